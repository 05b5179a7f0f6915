// Who computes what? The layout whose step is shortest, among all numbers of stages, cuts, replicas
// of each stage, micro-batches, schedules, placements, with the optimizer sharded or not.
//
//   1  data parallel and stages of equal times: whatever comes later, there is an answer
//   2  dynamic programming proposes splits (splits.h)
//   3  those that look best are evaluated as each schedule executes them (objective.h)
//   4  the best are refined: cuts, replicas and the rest are changed one at a time while that helps
//   5  where all layouts can be enumerated, branch and bound does so: the result is the optimum
//
// Layouts with the same schedule and number of stages are a family. Each family is searched by
// itself, as if it were the only one, unless a bound shows that it can't win. So who allows more
// never gets less. The result is the same on every run, unless the time limit ends it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/objective.h"

namespace renkei {
class Settings;
}

namespace renkei::plan {

struct SearchProgress {
  std::string doing;
  int64_t done = 0, total = 0;
  double best_seconds = 0;  // 0: nothing fits so far
};

struct SearchOptions {
  std::vector<ScheduleKind> schedules = {ScheduleKind::accumulate, ScheduleKind::gpipe,
                                         ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                         ScheduleKind::zero_bubble};
  std::vector<int> micro_batches = {};  // empty: those that divide the batch, thinned out
  std::optional<int> stages = {};
  std::vector<int> chunks = {2, 4};  // of interleaved schedules
  std::vector<bool> sharded = {false, true};
  double time_limit_seconds = 60;
  int64_t exact_nodes = 500'000;  // that branch and bound visits in a family; 0: leave it out
  bool first_fit = false;         // end with the first layout that fits
  std::function<void(const SearchProgress&)> progress = {};
};

// A layout that was considered, and why it was not taken.
struct Alternative {
  Evaluated evaluated;
  std::string reason;
};

struct SearchResult {
  std::optional<Evaluated> best;  // empty: nothing fits
  double lower_bound_seconds = 0;
  bool exact = false;      // no layout of the space is faster, whatever its micro-batches
  bool timed_out = false;  // the time limit ended the search
  double search_seconds = 0;
  int64_t evaluations = 0;
  std::vector<Alternative> rejected;  // the best of each other kind, fastest first
};

SearchResult search(const Objective& objective, const SearchOptions& options);

// The settings plan.*, and the options that follow from them.
void declare_settings(Settings& settings);
SearchOptions search_options(const Settings& settings);

// All numbers of micro-batches, up to 4096, that divide the batch, or those that the options ask
// for.
std::vector<int> all_micro_batches(int64_t batch, const SearchOptions& options);
// Of them those that stages are proposed for: thinned out, the others are left to refinement.
std::vector<int> micro_batch_choices(int64_t batch, const SearchOptions& options);

// No layout with these stages is faster, whatever its reductions.
double lower_bound(const Shape& shape, std::span<const StageTimes> stages);
// About how long it takes.
double estimate(const Shape& shape, std::span<const StageTimes> stages);
// No layout of this shape is faster, however it divides `work`: seconds of a micro-batch on one
// device.
double least_seconds(const Shape& shape, int devices, double work);

}  // namespace renkei::plan
