#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/source/dali_index.h"
#include "data/source/shard_index.h"
#include "data/storage/storage.h"

namespace renkei::data {

// Writes one tar shard with its two indices. SHARD.tar and SHARD.idx appear complete, then
// SHARD.index: where that one is, the shard is finished.
class ShardWriter {
 public:
  // `stem` is the path without ".tar".
  ShardWriter(const Storage& storage, std::string stem);

  // `key` is the name of the sample without its extension. What is no image is 0 × 0.
  void add(const std::string& key, std::string_view extension, std::string_view content,
           int64_t label, uint32_t width, uint32_t height);
  void finish();

  int64_t bytes() const { return offset_; }

 private:
  void add_member(const std::string& key, std::string_view extension, std::string_view content);
  void write(std::string_view bytes);

  const Storage& storage_;
  std::string stem_;
  std::unique_ptr<ByteWriter> archive_;
  int64_t offset_ = 0;
  std::vector<TarSample> samples_;
  std::vector<IndexedSample> index_;
};

}  // namespace renkei::data
