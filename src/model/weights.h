// The values of a network as a file: a dictionary from names to tensors. Python reads it with
// torch.load and writes it with torch.save(dict(model.state_dict()), FILE); a TorchScript file
// (torch.jit.save) can be read too.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>

namespace renkei::model {

using NamedTensors = std::map<std::string, torch::Tensor>;

// Throws a data Error where the file is missing or is something else.
NamedTensors read_tensors(const std::filesystem::path& file);
void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors);

// All parameters and buffers of a module, by the names that Python's state_dict gives them.
NamedTensors named_state(const torch::nn::Module& module);

// Copies the file's values into the module. Names and shapes must be the same; the Error names the
// first that is not.
void load_weights(torch::nn::Module& module, const std::filesystem::path& file);

}  // namespace renkei::model
