#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace renkei::queue {

// A run as its directory tells, or a job of the queue that has none yet.
struct Run {
  std::string name;
  std::string
      state;  // finished, stopped (can go on), failed, running, interrupted; or Slurm's word
  std::optional<int64_t> step = {}, steps = {};
  std::optional<double> seconds_left = {};  // from the pace of its last steps
  std::string where = {};                   // nodes, while a queue has it
};

// The directories of runs in `directory`, by name. `now` is in seconds since 1970.
std::vector<Run> list_runs(const std::filesystem::path& directory, double now);

// The jobs in lines of squeue --format=%i|%j|%T|%N, put to their runs or behind them.
void add_queue(std::vector<Run>& runs, const std::string& squeue_lines);

}  // namespace renkei::queue
