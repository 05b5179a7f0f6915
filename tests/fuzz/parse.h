// Files from nowhere, given to each parser: it must end well or throw a data Error. Shared by the
// libFuzzer targets and by the test that runs a few thousand damaged files.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "data/image/decode.h"
#include "data/source/dali_index.h"
#include "data/source/npy.h"
#include "data/source/shard_index.h"
#include "data/source/tfrecord.h"
#include "data/source/zip.h"
#include "tests/data/memory_file.h"

namespace renkei::data {

inline void parse_tar(std::string_view bytes) {
  scan_tar(MemoryFile(std::string(bytes)));
}

inline void parse_idx(std::string_view bytes) {
  parse_dali_index(bytes, "file", 1 << 20);
}

inline void parse_index(std::string_view bytes) {
  parse_shard_index(bytes, "file", 1 << 20);
}

inline void parse_npz(std::string_view bytes) {
  const MemoryFile file{std::string(bytes)};
  for (const ZipMember& member : read_zip_directory(file)) {
    if (member.deflated)
      unpack_zip_member(file, member);
    else
      read_npy_header(file, member.offset, member.size);
  }
}

inline void parse_tfrecord(std::string_view bytes) {
  const MemoryFile file{std::string(bytes)};
  for (const TfRecord& record : scan_tfrecords(file))
    find_example_image(file.read(record.offset, record.length));
}

inline void parse_image(std::string_view bytes) {
  const ImageExtent extent = read_image_extent(bytes, "file");
  if (extent.width > 512 || extent.height > 512) return;  // slow, and nothing new
  Image image;
  decode_image_region(bytes, "file", {extent.width / 3, extent.height / 3, 1, 1}, 1, image);
}

template <typename Parse>
void expect_no_other_error(Parse parse, std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    if (error.code != ErrorCode::data) throw;
  }
}

}  // namespace renkei::data
