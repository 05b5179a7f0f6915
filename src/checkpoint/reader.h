#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "capture/named_tensors.h"
#include "checkpoint/manifest.h"

namespace renkei::checkpoint {

// A checkpoint whose manifest is whole. Nothing is read before it is asked for.
class Reader {
 public:
  // Throws a data Error where there is no manifest, or a damaged one.
  explicit Reader(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }

  // Whether a file is as it was written: size and checksum. A data Error says what is wrong.
  void verify(const FileEntry& file) const;

  bool has(std::string_view name) const { return manifest_.tensors.contains(name); }
  // Elements from `begin` on. The tensor must have this type and these sizes: a data Error.
  struct Wanted {
    program::DType dtype = program::DType::f32;
    std::span<const int64_t> sizes = {};
  };
  void read(std::string_view name, const Wanted& wanted, int64_t begin, std::span<std::byte> into);

 private:
  const capture::StoredTensor& stored(const Piece& piece);

  std::filesystem::path directory_;
  Manifest manifest_;
  std::map<std::string, capture::NamedTensors> files_;  // those that were opened
};

}  // namespace renkei::checkpoint
