// The parameters and buffers of a model, wherever they are.
#pragma once

#include <filesystem>

#include "capture/named_tensors.h"
#include "comm/transport/transport.h"

namespace renkei::checkpoint {

// Of a file of weights; of a run: its model.safetensors, or else its newest checkpoint that is
// whole; of a directory of checkpoints; or of one checkpoint, which is verified. A checkpoint has
// tied weights under one name, and the mean of running statistics that differ between replicas.
// Throws data Errors.
capture::NamedTensors read_weights(const std::filesystem::path& path);

// All ranks together: the file or the checkpoint that the first would read from there, for all to
// read the same where a training is writing new ones meanwhile.
std::filesystem::path find_weights(const std::filesystem::path& path, comm::Transport& transport,
                                   const comm::Call& call);

}  // namespace renkei::checkpoint
