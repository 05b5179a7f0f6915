// What one rank writes of a checkpoint: a safetensors file of the runs of elements that are its to
// write.
#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/manifest.h"

namespace renkei::checkpoint {

// A run of elements of a tensor, in memory.
struct Run {
  std::string name;
  program::DType dtype = program::DType::f32;
  std::vector<int64_t> sizes = {};  // of the whole tensor
  int64_t begin = 0;                // the first element
  std::span<const std::byte> bytes = {};

  int64_t count() const { return static_cast<int64_t>(bytes.size()) / program::bytes_of(dtype); }
};

struct Shard {
  FileEntry file;
  std::map<std::string, TensorEntry, std::less<>> tensors;
};

// Returns when the file is on the disk, not only in the memory of the system. Throws data Errors.
Shard write_shard(const std::filesystem::path& file, std::span<const Run> runs);

// Shards travel to the rank that writes the manifest.
std::string to_text(const Shard& shard);
Shard shard_from_text(const std::string& text);
// Into the manifest, in any order; parse_manifest() checks that all is there.
void add_shard(Manifest& manifest, Shard shard);
// When all are added.
void sort_pieces(Manifest& manifest);

}  // namespace renkei::checkpoint
