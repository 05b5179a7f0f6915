// Where did the time of a step go? Each rank's step is divided by cause, and the parts add up to
// its wall time.
//
// What a rank does, its slices say. What it waits for, the others' slices say: until the message it
// needs was sent, or the last rank came to a reduction, it is idle; what is left of the wait is
// communication. Why it was idle, a replay tells (replay.h): without communication the step is
// executed again and again, with one cause less each time, and the idle time that goes away with a
// cause is that cause's:
//
//   all begin together ──► wait (for a late rank)    without loading ──► data
//   equal replicas ──► wait (for a slower rank)
//   balanced stages ──► imbalance    what stays ──► bubble
#pragma once

#include "report/recorded_step.h"

namespace renkei::report {

struct Attribution {
  struct Step {
    int64_t step = 0;
    double begin = 0;
    std::vector<timeline::StepTimes> ranks;  // each adds up to that rank's step
  };
  std::vector<Step> steps;

  // Means over the steps after the warm-up.
  std::vector<timeline::StepTimes> ranks;
  timeline::StepTimes all;                      // over the ranks, too
  std::vector<double> hidden_communication;     // of each rank, behind computing
  std::vector<std::vector<double>> waited_for;  // [rank][other]: idle seconds of a step
  double step_seconds = 0;                      // from the first rank's begin to the last one's end
};

// The first steps allocate memory and fill caches; figures of speed leave them out.
inline constexpr size_t kWarmUpSteps = 2;

Attribution attribute(const std::vector<RecordedStep>& steps, size_t warm_up = kWarmUpSteps);

}  // namespace renkei::report
