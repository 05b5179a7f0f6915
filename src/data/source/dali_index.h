// DALI's text index of a tar archive ("wds2idx"), version 1.2, and 1.1 which has no names:
//
//   v1.2 2
//   jpg 512 40000 a/000.jpg cls 41472 2 a/000.cls
//   jpg 43008 38211 a/001.jpg cls 81920 2 a/001.cls
//
// One line per sample; extension, offset and size of the data, and name of each component. Fields
// are separated by blanks, so names with blanks have no place in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/storage/byte_file.h"

namespace renkei::data {

struct TarComponent {
  std::string extension;
  int64_t offset = 0;
  int64_t size = 0;
  std::string name = {};

  bool operator==(const TarComponent&) const = default;
};
using TarSample = std::vector<TarComponent>;

// Throws a data Error that names `file` and the line. `tar_bytes` is the size of the archive, which
// every component must lie in.
std::vector<TarSample> parse_dali_index(std::string_view text, std::string_view file,
                                        int64_t tar_bytes);

// A data Error when a name has a blank in it.
std::string format_dali_index(const std::vector<TarSample>& samples);

// Groups the members of an archive as the index does: neighbours with the same name up to the first
// dot are one sample.
std::vector<TarSample> scan_tar(const ByteFile& file);

}  // namespace renkei::data
