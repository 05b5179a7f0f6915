// Reads a .pt2 file and prints what became of it as JSON, for pt2_test.py to compare with PyTorch:
// the programs, and a checksum of each tensor's bytes.
#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/pt2.h"
#include "program/program_json.h"

namespace {

using namespace renkei;

nlohmann::json tensors_json(const program::Program& program,
                            const std::vector<capture::StoredTensor>& tensors) {
  nlohmann::json all = nlohmann::json::object();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const capture::StoredTensor& tensor = tensors[i];
    nlohmann::json one{{"sizes", tensor.sizes}, {"dtype", program::name_of(tensor.dtype)}};
    // In pieces of an odd length, as ranks that keep a part would read it.
    if (tensor.has_values()) {
      uLong checksum = ::crc32(0, nullptr, 0);
      std::string piece;
      for (int64_t at = 0; at < tensor.bytes(); at += static_cast<int64_t>(piece.size())) {
        piece.resize(static_cast<size_t>(std::min<int64_t>(1'000'003, tensor.bytes() - at)));
        tensor.read(at, piece);
        checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()),
                           static_cast<uInt>(piece.size()));
      }
      one["checksum"] = checksum;
    }
    all[program.state[i].name] = one;
  }
  return all;
}

nlohmann::json parsed(const program::Program& program) {
  return nlohmann::json::parse(program::to_json(program));
}

nlohmann::json read(const std::string& path) {
  const capture::Pt2File file = capture::read_pt2(path);
  nlohmann::json result{{"program", parsed(file.program)},
                        {"tensors", tensors_json(file.program, file.tensors)},
                        {"has_values", file.has_values}};
  if (file.evaluation) {
    result["evaluation"] = parsed(*file.evaluation);
    result["evaluation_tensors"] = tensors_json(*file.evaluation, file.evaluation_tensors);
  }
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    for (int i = 1; i < count; ++i) fmt::print("{}\n", read(arguments[i]).dump());
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", format_for_people(error));
    return error.exit_code();
  }
}
