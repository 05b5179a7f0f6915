// The steps of a timeline as lists of tasks again: what each rank did, when, and for whom it
// waited.
#pragma once

#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "timeline/rank_file.h"

namespace renkei::report {

struct RecordedTask {
  schedule::Task task;
  double begin, end;
  int peer;  // the rank at the other end of a transfer, or -1
  int64_t bytes;

  double seconds() const { return end - begin; }
};

struct RecordedStep {
  int64_t step = 0;
  struct Rank {
    double begin = 0, end = 0;
    std::vector<RecordedTask> tasks = {};
    timeline::StepRecord sums = {};
    double reduced_seconds = 0;  // on the reducer's thread
  };
  std::vector<Rank> ranks = {};
  std::vector<std::vector<int>> ranks_of =
      {};  // of each stage, then of each set of tied parameters
  int stages = 1, micro_batches = 1;

  double begin() const;    // of the first rank
  double seconds() const;  // from there until the last rank is done
};

// Those of which all slices of all ranks are there, at most `most`, the last ones.
std::vector<RecordedStep> recorded_steps(std::span<const timeline::RankTimeline> ranks,
                                         size_t most = 2000);

}  // namespace renkei::report
