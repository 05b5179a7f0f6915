// A run that goes on where it stopped: in its directory, with its settings but for those that are
// given anew.
#pragma once

#include <filesystem>
#include <string>

#include "base/settings.h"

namespace renkei::job {

// The run that --resume names; without a name the newest in runs/. Throws a usage Error.
std::filesystem::path find_run(const std::string& named);

// How many ranks it had, by its plan; 0: unknown.
int ranks_of_run(const std::filesystem::path& run);

// `settings` are those of the run, overridden by what was given: the run goes on in its directory,
// and its batch stays what it was, on however many ranks.
void take_over(Settings& settings, const std::filesystem::path& run);

// The settings to plan by: on as many ranks as before, the plan is the one that the run has, unless
// another was asked for.
Settings planning_settings(const Settings& settings, const std::filesystem::path& run, int ranks);

// What was told of steps from `step` on is taken back: the lines of metrics.jsonl and the events
// for TensorBoard. They will come again.
void cut_records(const std::filesystem::path& run, int64_t step);

}  // namespace renkei::job
