#include "data/storage/sequential_reader.h"

#include <algorithm>

namespace renkei::data {

std::string_view SequentialReader::peek(int64_t length) {
  const auto in_block = [&] {
    return offset_ >= block_begin_ &&
           offset_ - block_begin_ + length <= static_cast<int64_t>(block_.size());
  };
  if (!in_block()) {
    block_ = file_.read(offset_, std::max(length, std::min(block_bytes_, left())));
    block_begin_ = offset_;
  }
  return std::string_view(block_).substr(static_cast<size_t>(offset_ - block_begin_),
                                         static_cast<size_t>(length));
}

std::string_view SequentialReader::take(int64_t length) {
  const std::string_view bytes = peek(length);
  offset_ += length;
  return bytes;
}

void SequentialReader::skip(int64_t length) {
  // A length from a damaged file may be near 2^63.
  offset_ += std::min(length, std::max<int64_t>(left(), 0) + 1);
}

}  // namespace renkei::data
