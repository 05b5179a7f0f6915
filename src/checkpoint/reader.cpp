#include "checkpoint/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "capture/safetensors.h"
#include "data/storage/storage.h"

namespace renkei::checkpoint {
namespace {

constexpr int64_t kAtOnce = 8 << 20;
constexpr const char* kHint = "an older checkpoint may still be whole";

}  // namespace

Reader::Reader(std::filesystem::path directory)
    : directory_(std::move(directory)),
      manifest_(parse_manifest(read_file(directory_ / "manifest.json"),
                               (directory_ / "manifest.json").string())) {}

void Reader::verify(const FileEntry& file) const {
  const std::string path = (directory_ / file.name).string();
  const auto bytes = data::open_storage(path)->open(path);
  if (bytes->size() != file.bytes)
    throw Error(ErrorCode::data,
                fmt::format("{} has {} bytes in place of {}", path, bytes->size(), file.bytes),
                kHint);
  Checksum checksum;
  std::string piece;
  for (int64_t at = 0; at < file.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min(kAtOnce, file.bytes - at)));
    bytes->read(at, std::span(piece));
    checksum.add(piece);
  }
  if (checksum.hex() != file.checksum)
    throw Error(ErrorCode::data, fmt::format("{} is damaged: its checksum does not match", path),
                kHint);
}

const capture::StoredTensor& Reader::stored(const Piece& piece) {
  auto file = files_.find(piece.file);
  if (file == files_.end())
    file = files_.emplace(piece.file, capture::read_safetensors((directory_ / piece.file).string()))
               .first;
  const auto tensor = file->second.find(piece.key);
  if (tensor == file->second.end())
    throw Error(ErrorCode::data,
                fmt::format("{} has no '{}'", (directory_ / piece.file).string(), piece.key),
                kHint);
  return tensor->second;
}

void Reader::read(std::string_view name, const Wanted& wanted, int64_t begin,
                  std::span<std::byte> into) {
  const auto found = manifest_.tensors.find(name);
  const std::string place = directory_.string();
  if (found == manifest_.tensors.end())
    throw Error(ErrorCode::data, fmt::format("{} has no '{}'", place, name),
                "it was made with another network or optimizer: use the settings of its run");
  const TensorEntry& tensor = found->second;
  if (tensor.dtype != wanted.dtype || !std::ranges::equal(tensor.sizes, wanted.sizes))
    throw Error(ErrorCode::data,
                fmt::format("{}: '{}' is {} [{}] there, and {} [{}] in this network", place, name,
                            program::name_of(tensor.dtype), fmt::join(tensor.sizes, ", "),
                            program::name_of(wanted.dtype), fmt::join(wanted.sizes, ", ")),
                "use the network that the checkpoint was made with");
  const int64_t element = program::bytes_of(tensor.dtype);
  const int64_t end = begin + static_cast<int64_t>(into.size()) / element;
  for (const Piece& piece : tensor.pieces) {
    const int64_t from = std::max(begin, piece.begin);
    const int64_t to = std::min(end, piece.begin + piece.count);
    if (from >= to) continue;
    const auto part = into.subspan(static_cast<size_t>((from - begin) * element),
                                   static_cast<size_t>((to - from) * element));
    stored(piece).read((from - piece.begin) * element,
                       {reinterpret_cast<char*>(part.data()), part.size()});
  }
}

}  // namespace renkei::checkpoint
