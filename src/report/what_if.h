// What would a step take without one of its causes, and what should one do about it? Recorded steps
// are replayed with the cause taken away (replay.h); the same steps are replayed unchanged, too,
// and how far that is from what was measured stands beside every figure.
#pragma once

#include <optional>
#include <string>

#include "report/attribution.h"

namespace renkei::report {

struct WhatIf {
  std::string cause;   // "stages balanced"
  std::string advice;  // what to do for it
  double step_seconds = 0;
  double replay_error = 0;  // of the unchanged replay, relative
};

struct WhatIfs {
  double measured_seconds = 0;  // a step, median of those that were replayed
  double replay_seconds = 0;
  std::vector<WhatIf> list;  // the largest gain first

  double replay_error() const {
    return measured_seconds > 0 ? replay_seconds / measured_seconds - 1 : 0;
  }
};
WhatIfs what_if(const std::vector<RecordedStep>& steps, const Attribution& attribution);

// The rank that computes slower than the median of its stage's replicas.
struct SlowRank {
  int rank = -1;
  double slower = 0;  // 0.18: 18 % more time than the median
};
std::optional<SlowRank> slowest_rank(const std::vector<RecordedStep>& steps,
                                     double at_least = 0.03);

struct Verdict {
  std::string cause;     // a category, or "none"
  int rank = -1;         // where it is, if it is one rank's
  std::string sentence;  // "rank 3 computes 18 % slower than the median of its replicas; …"
  std::vector<std::string> evidence;
  std::string advice;
  double gain_seconds = 0;  // of a step
};
Verdict verdict_of(const std::vector<RecordedStep>& steps, const Attribution& attribution,
                   const WhatIfs& what_ifs);

}  // namespace renkei::report
