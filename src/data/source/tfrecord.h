// TFRecord files: u64 length · u32 masked CRC-32C of the length · payload · u32 masked CRC-32C of
// the payload, record after record. There is no index; a scan hops from length to length. The
// payload is a tf.train.Example, a protocol buffer that maps names to lists of bytes, floats or
// integers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

struct TfRecord {
  int64_t offset = 0;  // of the payload
  int64_t length = 0;
  int64_t label = kNoLabel;  // feature "image/class/label" or "label"
};

// Reads lengths and labels; what else is in a record is skipped.
std::vector<TfRecord> scan_tfrecords(const ByteFile& file);

uint32_t masked_crc32c(std::string_view bytes);
bool looks_like_tfrecord(std::string_view first_12_bytes);

struct TfRecordSourceOptions {
  std::vector<std::string> files;
  int threads = 0;
};

// The features of the first record are the fields: "image/encoded" or "image" is the input, the
// label the target; numbers and further images are called as they are.
std::unique_ptr<Source> open_tfrecord_source(const Storage& storage,
                                             const TfRecordSourceOptions& options);

}  // namespace renkei::data
