#include "model/weights.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/script.h>

#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace renkei::model {
namespace {

NamedTensors tensors_of_script(const std::filesystem::path& file) {
  const torch::jit::Module script = torch::jit::load(file.string());
  NamedTensors tensors;
  for (const auto& named : script.named_parameters()) tensors[named.name] = named.value;
  for (const auto& named : script.named_buffers()) tensors[named.name] = named.value;
  return tensors;
}

NamedTensors tensors_of_dictionary(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  const c10::IValue value = torch::pickle_load({bytes.begin(), bytes.end()});
  NamedTensors tensors;
  for (const auto& entry : value.toGenericDict())
    tensors[entry.key().toStringRef()] = entry.value().toTensor();
  return tensors;
}

}  // namespace

NamedTensors read_tensors(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw Error(ErrorCode::data, fmt::format("there is no weights file {}", file.string()));
  try {
    const bool script =
        caffe2::serialize::PyTorchStreamReader(file.string()).hasRecord("constants.pkl");
    return script ? tensors_of_script(file) : tensors_of_dictionary(file);
  } catch (const c10::Error&) {
    throw Error(
        ErrorCode::data,
        fmt::format("{} is not a file of named tensors that LibTorch can read", file.string()),
        "write it in Python with torch.save(dict(model.state_dict()), FILE)");
  }
}

void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors) {
  c10::Dict<std::string, torch::Tensor> dictionary;
  for (const auto& [name, tensor] : tensors)
    // A copy: a view would take the whole flat buffer along into the file.
    dictionary.insert(name, tensor.detach().clone());
  const std::vector<char> bytes = torch::pickle_save(dictionary);
  write_file_atomically(file, std::string_view(bytes.data(), bytes.size()));
}

NamedTensors named_state(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& named : module.named_parameters()) state[named.key()] = named.value();
  for (const auto& named : module.named_buffers()) state[named.key()] = named.value();
  return state;
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& file) {
  const torch::NoGradGuard no_grad;
  const NamedTensors given = read_tensors(file);
  NamedTensors wanted = named_state(module);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::data,
                fmt::format("{} does not fit the network: {}", file.string(), what),
                "check model.name and the settings that change its shape, such as model.classes");
  };
  for (auto& [name, tensor] : wanted) {
    const auto found = given.find(name);
    if (found == given.end()) refuse(fmt::format("it has no {}", name));
    if (found->second.sizes() != tensor.sizes())
      refuse(fmt::format("{} is {} in the file and {} in the network", name,
                         fmt::join(found->second.sizes(), " × "),
                         fmt::join(tensor.sizes(), " × ")));
  }
  for (const auto& [name, tensor] : given)
    if (!wanted.contains(name)) refuse(fmt::format("the network has no {}", name));
  for (auto& [name, tensor] : wanted) tensor.copy_(given.at(name));
}

}  // namespace renkei::model
