#include "capture/weights_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "capture/pt2.h"
#include "capture/safetensors.h"
#include "capture/state_dict.h"

namespace renkei::capture {

NamedTensors read_weights_file(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw Error(ErrorCode::data, fmt::format("there is no weights file {}", file.string()));
  if (file.extension() == ".safetensors") return read_safetensors(file.string());
  if (file.extension() != ".pt2") return read_state_dict(file.string());
  const Pt2File read = read_pt2(file.string());
  NamedTensors tensors;
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    const program::State& state = read.program.state[i];
    if (state.kind == program::StateKind::constant || !state.persistent) continue;
    tensors.emplace(state.name, read.tensors[i]);
    for (const std::string& alias : state.aliases) tensors.emplace(alias, read.tensors[i]);
  }
  return tensors;
}

void write_weights_file(const std::filesystem::path& file, const NamedTensors& tensors,
                        const std::string& network) {
  const std::string ending = file.extension();
  if (ending == ".safetensors") return write_safetensors(file, tensors, {{"format", "pt"}});
  if (ending == ".pt" || ending == ".pth" || ending == ".bin")
    return write_state_dict(file, tensors);
  if (ending != ".pt2")
    throw Error(
        ErrorCode::usage,
        fmt::format("{} does not say what to write: it ends with '{}'", file.string(), ending),
        "choose a name that ends with .safetensors, .pt, .pth, .bin or .pt2");
  if (!network.ends_with(".pt2"))
    throw Error(ErrorCode::usage, "a .pt2 file has the network too, and there are only weights",
                "name the .pt2 file of the network: --network FILE.pt2");
  write_pt2_with(network, tensors, file);
}

NamedTensors fit_weights(const program::Program& program, NamedTensors given,
                         const std::string& source) {
  NamedTensors taken;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::data, fmt::format("{} does not fit the network: {}", source, what),
                "check model.name and the settings that change its shape, such as model.classes");
  };
  for (const program::State& state : program.state) {
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    const auto found =
        std::ranges::find_if(names, [&](const std::string& name) { return given.contains(name); });
    const bool wanted = state.kind != program::StateKind::constant && state.persistent;
    if (wanted && found == names.end()) refuse(fmt::format("it has no {}", state.name));
    if (wanted) {
      const StoredTensor tensor = given.at(*found);
      const auto sizes = program::sizes_of(program.value(state.value), {});
      if (tensor.sizes != sizes)
        refuse(fmt::format("{} is {} in the file and {} in the network", state.name,
                           fmt::join(tensor.sizes, " × "), fmt::join(sizes, " × ")));
      for (const std::string& name : names) taken[name] = tensor;
    }
    for (const std::string& name : names) given.erase(name);
  }
  if (!given.empty()) refuse(fmt::format("the network has no {}", given.begin()->first));
  return taken;
}

}  // namespace renkei::capture
