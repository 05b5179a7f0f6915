// Files from nowhere, given to each parser: it must end well or throw a data Error. Shared by the
// libFuzzer targets, by the test that runs a few thousand damaged files, and by the one that runs
// what libFuzzer collected (corpus/).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "data/image/decode.h"
#include "data/source/dali_index.h"
#include "data/source/example.h"
#include "data/source/npy.h"
#include "data/source/shard_index.h"
#include "data/source/tfrecord.h"
#include "data/source/zip.h"
#include "tests/data/memory_file.h"
#include "tests/fuzz/expect.h"
#ifdef RENKEI_HAVE_HDF5
#include "data/source/hdf5_source.h"
#include "tests/data/memory_storage.h"
#include "tests/fuzz/hdf5_recipe.h"
#endif

namespace renkei::data {

inline void parse_tar(std::string_view bytes) {
  scan_tar(MemoryFile(std::string(bytes)));
}

inline void parse_idx(std::string_view bytes) {
  parse_dali_index(bytes, "file", 1 << 20);
}

inline void parse_index(std::string_view bytes) {
  // Also with the right checksum, which nobody guesses.
  std::string checked(bytes);
  const uint64_t checksum = Checksum().add(bytes).value();
  checked.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  expect_no_other_error([](std::string_view text) { parse_shard_index(text, "file", 1 << 20); },
                        checked);
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
  const auto parse = [](std::string_view payload) {
    std::string numbers;
    for (const Feature& feature : parse_example(payload)) {
      first_bytes(feature);
      append_numbers(feature, numbers);
    }
  };
  // Also as what is inside of a record: nobody guesses its checksum.
  expect_no_other_error(parse, bytes);
  const MemoryFile file{std::string(bytes)};
  for (const TfRecord& record : scan_tfrecords(file))
    parse(file.read(record.offset, record.length));
}

#ifdef RENKEI_HAVE_HDF5
// Not the bytes of a file, but of a recipe for one.
inline void parse_hdf5(std::string_view recipe) {
  const MemoryStorage storage(make_hdf5_file(recipe));
  for (const Part part : {Part::train, Part::held_out}) {
    const auto source = open_hdf5_source(storage, {.path = "file", .part = part});
    if (!source) continue;
    for (const StoredField& field : source->fields()) {
      if (field.is_label() || field.layout->bytes() > 1 << 20) continue;
      for (int64_t sample = 0; sample < std::min<int64_t>(source->count(), 4); ++sample)
        source->read(sample, field.record);
    }
  }
}
#endif

inline void parse_image(std::string_view bytes) {
  const ImageExtent extent = read_image_extent(bytes, "file");
  if (extent.width > 512 || extent.height > 512) return;  // slow, and nothing new
  Image image;
  decode_image_region(bytes, "file", {extent.width / 3, extent.height / 3, 1, 1}, 1, image);
}

}  // namespace renkei::data
