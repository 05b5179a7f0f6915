#include "data/storage/byte_file.h"

namespace renkei::data {

void ByteFile::read(int64_t offset, std::span<char> into) const {
  const auto length = static_cast<int64_t>(into.size());
  if (offset < 0 || offset > size_ || length > size_ - offset)
    throw damaged(name_, offset,
                  fmt::format("{} bytes are missing, as the file ends after {}", length, size_));
  if (length > 0) read_inside(offset, into);
}

std::string ByteFile::read(int64_t offset, int64_t length) const {
  // Checked before memory is asked for: a damaged header may claim any length.
  if (length < 0 || offset < 0 || offset > size_ || length > size_ - offset)
    throw damaged(name_, offset,
                  fmt::format("{} bytes are missing, as the file ends after {}", length, size_));
  std::string bytes(static_cast<size_t>(length), '\0');
  read(offset, std::span(bytes));
  return bytes;
}

Error damaged(std::string_view file, int64_t offset, std::string_view what) {
  return Error(ErrorCode::data, fmt::format("{}: {} (at offset {})", file, what, offset),
               "the file is damaged or incomplete; copy it again from its source");
}

}  // namespace renkei::data
