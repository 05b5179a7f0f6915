#include "checkpoint/shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "capture/safetensors.h"

namespace renkei::checkpoint {
namespace {

// The system is asked to begin with a piece while the next one is on its way: otherwise all of it
// is written by the sync at the end, one after the other.
constexpr size_t kAtOnce = 16 << 20;

class ShardFile {
 public:
  explicit ShardFile(std::filesystem::path path) : path_(std::move(path)) {
    // A new file, never one that something else may point to.
    ::unlink(path_.c_str());
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) throw_file_error("create", path_, errno);
  }
  ~ShardFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ShardFile(const ShardFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    checksum_.add(bytes);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t written =
          ::write(descriptor_, bytes.data() + at, std::min(kAtOnce, bytes.size() - at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_file_error("write", path_, errno);
      at += static_cast<size_t>(written);
      size_ += written;
      if (size_ - begun_ >= static_cast<int64_t>(kAtOnce)) {
        ::sync_file_range(descriptor_, begun_, size_ - begun_, SYNC_FILE_RANGE_WRITE);
        begun_ = size_;
      }
    }
  }

  FileEntry finish() {
    if (::fsync(descriptor_) != 0) throw_file_error("write", path_, errno);
    // A network file system may report only here that it has no space.
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write", path_, errno);
    return {.name = path_.filename(), .bytes = size_, .checksum = checksum_.hex()};
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0, begun_ = 0;
  Checksum checksum_;
};

std::string key_of(const Run& run, bool whole) {
  return whole ? run.name : fmt::format("{}@{}", run.name, run.begin);
}

}  // namespace

Shard write_shard(const std::filesystem::path& file, std::span<const Run> runs) {
  Shard shard;
  const std::string name = file.filename();
  capture::NamedTensors header;
  std::map<std::string, std::span<const std::byte>, std::less<>> values;
  for (const Run& run : runs) {
    TensorEntry& tensor = shard.tensors[run.name];
    tensor.dtype = run.dtype;
    tensor.sizes = run.sizes;
    const bool whole = run.begin == 0 && run.count() == tensor.count();
    const std::string key = key_of(run, whole);
    tensor.pieces.push_back({.file = name, .key = key, .begin = run.begin, .count = run.count()});
    header[key] = {.dtype = run.dtype,
                   .sizes = whole ? run.sizes : std::vector<int64_t>{run.count()}};
    values[key] = run.bytes;
  }
  ShardFile writing(file);
  const std::string before = capture::safetensors_header(header);
  writing.write(std::as_bytes(std::span(before)));
  for (const std::string& key : capture::order_in_safetensors(header)) writing.write(values[key]);
  shard.file = writing.finish();
  return shard;
}

std::string to_text(const Shard& shard) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& [name, tensor] : shard.tensors) {
    nlohmann::json pieces = nlohmann::json::array();
    for (const Piece& piece : tensor.pieces)
      pieces.push_back({piece.key, piece.begin, piece.count});
    tensors.push_back({name, static_cast<int>(tensor.dtype), tensor.sizes, pieces});
  }
  return nlohmann::json{{"file", {shard.file.name, shard.file.bytes, shard.file.checksum}},
                        {"tensors", tensors}}
      .dump();
}

Shard shard_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  const nlohmann::json& file = json.at("file");
  Shard shard{.file = {file.at(0), file.at(1), file.at(2)}, .tensors = {}};
  for (const nlohmann::json& tensor : json.at("tensors")) {
    TensorEntry& entry = shard.tensors[tensor.at(0)];
    entry.dtype = static_cast<program::DType>(tensor.at(1).get<int>());
    entry.sizes = tensor.at(2).get<std::vector<int64_t>>();
    for (const nlohmann::json& piece : tensor.at(3))
      entry.pieces.push_back({.file = shard.file.name,
                              .key = piece.at(0),
                              .begin = piece.at(1),
                              .count = piece.at(2)});
  }
  return shard;
}

void add_shard(Manifest& manifest, Shard shard) {
  manifest.files.push_back(std::move(shard.file));
  for (auto& [name, tensor] : shard.tensors) {
    const auto [place, is_new] = manifest.tensors.try_emplace(name, std::move(tensor));
    if (!is_new) std::ranges::move(tensor.pieces, std::back_inserter(place->second.pieces));
  }
}

void sort_pieces(Manifest& manifest) {
  for (auto& [name, tensor] : manifest.tensors)
    std::ranges::sort(tensor.pieces, {},
                      [](const Piece& p) { return std::pair(p.begin, p.count); });
}

}  // namespace renkei::checkpoint
