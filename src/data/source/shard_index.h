// The compact index of a tar shard, which `renkei data pack` writes beside it (SHARD.index). Little
// endian; 40 bytes per sample:
//
//   "RENKEIx1" · u64 samples · u64 bytes of the archive
//   per sample: u64 offset · u64 size · u64 XXH3 of the content · i32 label · u32 width · u32
//   height
//               · u32 zero
//   u64 XXH3 of all before
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/byte_file.h"

namespace renkei::data {

struct IndexedSample {
  int64_t offset = 0;
  int64_t size = 0;
  uint64_t checksum = 0;
  int32_t label = -1;
  uint32_t width = 0;  // 0: not an image, or not known
  uint32_t height = 0;

  bool operator==(const IndexedSample&) const = default;
};

std::string format_shard_index(const std::vector<IndexedSample>& samples, int64_t tar_bytes);

// Throws a data Error that names `file`, also when the index belongs to an archive of another size.
std::vector<IndexedSample> parse_shard_index(std::string_view bytes, std::string_view file,
                                             int64_t tar_bytes);

}  // namespace renkei::data
