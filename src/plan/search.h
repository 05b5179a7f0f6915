// Who computes what? The layout whose step is shortest, among all numbers of stages, cuts, replicas
// of each stage, micro-batches, schedules, placements, with the optimizer sharded or not.
//
//   1  dynamic programming proposes splits (splits.h)
//   2  those that look best are evaluated as each schedule executes them (objective.h)
//   3  the best are refined: cuts, replicas and the rest are changed one at a time while that helps
//   4  where all layouts can be enumerated, branch and bound does so: the result is the optimum
//
// Data parallel, one stage on any number of devices, is always among the candidates. The result is
// the same on every run, unless the time limit ends it.
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
  int64_t exact_nodes = 2'000'000;  // the most that branch and bound visits; 0: leave it out
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
  bool exact = false;      // no layout of the space is faster
  bool timed_out = false;  // the time limit ended the search
  double search_seconds = 0;
  int64_t evaluations = 0;
  std::vector<Alternative> rejected;  // the best of each other kind, fastest first
};

SearchResult search(const Objective& objective, const SearchOptions& options);

// The settings plan.*, and the options that follow from them.
void declare_settings(Settings& settings);
SearchOptions search_options(const Settings& settings);

// The numbers of micro-batches that are considered.
std::vector<int> micro_batch_choices(int64_t batch, const SearchOptions& options);

// No layout with these stages is faster, whatever its sends and reductions.
double lower_bound(const Shape& shape, std::span<const StageTimes> stages);

}  // namespace renkei::plan
