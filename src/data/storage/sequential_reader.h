#pragma once

#include "data/storage/byte_file.h"

namespace renkei::data {

// Reads a file from front to back in blocks, for scans that look at small headers: one read of the
// storage serves many of them. What is skipped by more than a block is not read at all.
class SequentialReader {
 public:
  explicit SequentialReader(const ByteFile& file, int64_t block_bytes = 64 * 1024)
      : file_(file), block_bytes_(block_bytes) {}

  int64_t offset() const { return offset_; }
  int64_t left() const { return file_.size() - offset_; }
  const ByteFile& file() const { return file_; }

  // A view that holds until the next call. Beyond the end: a data Error, as of ByteFile::read.
  std::string_view peek(int64_t length);
  std::string_view take(int64_t length);
  void skip(int64_t length);  // may go beyond the end; the next take then fails
  void seek(int64_t offset) { offset_ = offset; }

 private:
  const ByteFile& file_;
  int64_t block_bytes_;
  int64_t offset_ = 0;
  int64_t block_begin_ = 0;
  std::string block_;
};

}  // namespace renkei::data
