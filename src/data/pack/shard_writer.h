#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/source/dali_index.h"
#include "data/source/shard_index.h"

namespace renkei::data {

// Writes one tar shard with its two indices. SHARD.tar and SHARD.idx appear complete, then
// SHARD.index: where that one is, the shard is finished. What is given up leaves nothing but a file
// SHARD.tar.partial, which the next attempt overwrites.
class ShardWriter {
 public:
  // `stem` is the path without ".tar".
  explicit ShardWriter(std::filesystem::path stem);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;

  // `key` is the name of the sample without its extension. What is no image is 0 × 0.
  void add(const std::string& key, std::string_view extension, std::string_view content,
           int64_t label, uint32_t width, uint32_t height);
  void finish();

  int64_t bytes() const { return offset_; }

 private:
  void add_member(const std::string& key, std::string_view extension, std::string_view content);
  void write(std::string_view bytes);
  void flush();

  std::filesystem::path stem_;
  int descriptor_;
  int64_t offset_ = 0;
  std::string buffer_;
  std::vector<TarSample> samples_;
  std::vector<IndexedSample> index_;
};

}  // namespace renkei::data
