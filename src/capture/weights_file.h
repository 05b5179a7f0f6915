// Files of named tensors, of any kind that people have: safetensors, a state dict that torch.save
// wrote, or the values of a .pt2 file.
#pragma once

#include <filesystem>

#include "capture/named_tensors.h"

namespace renkei::capture {

// Throws a data Error where the file is missing or is something else.
NamedTensors read_weights_file(const std::filesystem::path& file);

}  // namespace renkei::capture
