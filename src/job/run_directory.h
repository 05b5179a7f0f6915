// The directory of a run: everything that is worth keeping of it, readable after a crash at any
// moment.
//
//   config.toml    all settings, resolved         metrics.jsonl   one line per step and evaluation
//   plan.json      who computes what              events.out.…    the same for TensorBoard
//   summary.json   the result, as with --json     logs/rank-N.log
//   failure.json   why it failed, if it did
#pragma once

#include <filesystem>
#include <string>

#include "base/settings.h"
#include "comm/transport/transport.h"

namespace renkei::job {

void declare_run_settings(Settings& settings);

// The directory that run.dir names, or runs/DATE-TIME-LABEL; created by rank 0, the same on all
// ranks. One that already holds a run is refused, so that no run overwrites another.
std::filesystem::path make_run_directory(const Settings& settings, const std::string& label,
                                         comm::Transport& transport);

}  // namespace renkei::job
