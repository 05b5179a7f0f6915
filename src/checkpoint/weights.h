// The parameters and buffers of a model, wherever they are.
#pragma once

#include <filesystem>

#include "capture/named_tensors.h"

namespace renkei::checkpoint {

// Of a file of weights; of a run: its model.safetensors, or else its newest checkpoint that is
// whole; of a directory of checkpoints; or of one checkpoint, which is verified. A checkpoint has
// tied weights under one name, and the mean of running statistics that differ between replicas.
// Throws data Errors.
capture::NamedTensors read_weights(const std::filesystem::path& path);

}  // namespace renkei::checkpoint
