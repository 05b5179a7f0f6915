// The checkpoints of a run, side by side in one directory.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "comm/transport/transport.h"

namespace renkei::checkpoint {

std::filesystem::path directory_of(const std::filesystem::path& checkpoints, int64_t step);
std::string shard_name(int rank);

// All directories of checkpoints, newest first, also those without a manifest. Nothing where there
// is no directory.
struct Found {
  int64_t step = 0;
  std::filesystem::path directory;
  bool has_manifest = false;
};
std::vector<Found> find_checkpoints(const std::filesystem::path& checkpoints);

// The newest checkpoint that is whole; none where there is none. All ranks together: they divide
// the files among them to verify them. `tell` hears on rank 0 why a newer one was not taken.
std::optional<Reader> open_newest(const std::filesystem::path& checkpoints,
                                  comm::Transport& transport, const comm::Call& call,
                                  const std::function<void(const std::string&)>& tell);

// The same for one process, which verifies all files. A data Error where none is whole.
Reader open_newest(const std::filesystem::path& checkpoints);

// Those that stay: the last ones, and the best of all by a metric ("loss": the smallest;
// "accuracy": the largest; empty: none).
struct Retention {
  int last = 2;
  std::string best_by;
};
// Removes the others, and what was never finished, of steps before `newest`: what comes after it
// may be on its way. Of what can't be removed, a reason.
std::vector<std::string> prune(const std::filesystem::path& checkpoints, int64_t newest,
                               const Retention& retention);
// Those of later steps than `step`, which a training that goes on from there will make again.
void remove_after(const std::filesystem::path& checkpoints, int64_t step);

}  // namespace renkei::checkpoint
