#pragma once

#include <filesystem>

#include "schedule/evaluate.h"

namespace renkei::sim {

// The timeline of simulated ranks, as a run leaves its own in its directory (docs/timeline.md):
// timeline/rank-N.* and timeline.json, marked as predicted. At most `ranks` of them: a trace of
// thousands is of no use.
void write_predicted_timeline(const schedule::Evaluation& evaluation, int64_t samples,
                              const std::filesystem::path& run_directory, size_t ranks = 64);

}  // namespace renkei::sim
