#include "capture/weights_file.h"

#include <fmt/format.h>

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
  }
  return tensors;
}

}  // namespace renkei::capture
