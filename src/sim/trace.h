#pragma once

#include <string>

#include "schedule/evaluate.h"

namespace renkei::sim {

// The timeline of simulated ranks in the format that a run's has (timeline/chrome_trace.h). Hosts
// are called "predicted". At most `ranks` of them: a trace of thousands is of no use.
std::string predicted_trace(const schedule::Evaluation& evaluation, size_t ranks = 64);

}  // namespace renkei::sim
