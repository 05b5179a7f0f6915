// Files of named tensors, of any kind that people have: safetensors, a state dict that torch.save
// wrote, or the values of a .pt2 file.
#pragma once

#include <filesystem>

#include "capture/named_tensors.h"

namespace renkei::capture {

// Throws a data Error where the file is missing or is something else.
NamedTensors read_weights_file(const std::filesystem::path& file);

// By its ending: .safetensors, .pt, .pth or .bin (a state dict for torch.load), or .pt2, for which
// `network` is a .pt2 file with the program. Throws a usage Error for any other.
void write_weights_file(const std::filesystem::path& file, const NamedTensors& tensors,
                        const std::string& network = {});

// The tensors that a network has, under all their names: tied ones have several, and one of them is
// enough in `given`. Throws a data Error that begins with `source` where a name or a shape is not
// the network's.
NamedTensors fit_weights(const program::Program& program, NamedTensors given,
                         const std::string& source);

}  // namespace renkei::capture
