// Model files from nowhere, as parse.h has it for data sets. What is no zip archive is put into
// one, where the JSON or the pickle of a good file would be, so that damage reaches what is behind
// the zip.
#pragma once

#include <string>
#include <string_view>

#include "capture/pt2.h"
#include "capture/safetensors.h"
#include "capture/state_dict.h"
#include "tests/capture/sample_models.h"
#include "tests/fuzz/expect.h"

namespace renkei::capture {

inline void read_values(const StoredTensor& tensor) {
  if (tensor.has_values() && tensor.bytes() < 1 << 20) tensor.read_all();
}

inline void parse_pt2(std::string_view bytes) {
  std::string file(bytes);
  if (!bytes.starts_with("PK")) {
    Members members = SampleModel().members();
    members[0].second = std::string(bytes);
    file = data::zip(members, false);
  }
  for (const StoredTensor& tensor : read_pt2(memory_file(std::move(file))).tensors)
    read_values(tensor);
}

inline void parse_safetensors(std::string_view bytes) {
  std::string file(bytes);
  if (bytes.starts_with('{')) file = safetensors_file(file, std::string(16, 'x'));
  for (const auto& [name, tensor] : read_safetensors(memory_file(std::move(file))))
    read_values(tensor);
}

inline void parse_state_dict(std::string_view bytes) {
  const bool zipped = bytes.starts_with("PK");
  std::string file = zipped ? std::string(bytes) : state_dict_file(std::string(bytes));
  for (const auto& [name, tensor] : read_state_dict(memory_file(std::move(file))))
    read_values(tensor);
}

}  // namespace renkei::capture
