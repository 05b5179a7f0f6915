#pragma once

#include <cstring>
#include <memory>

#include "data/storage/byte_file.h"

namespace renkei::data {

// A file that is a string.
class MemoryFile : public ByteFile {
 public:
  explicit MemoryFile(std::string bytes, std::string name = "file")
      : ByteFile(std::move(name), static_cast<int64_t>(bytes.size())), bytes_(std::move(bytes)) {}

 protected:
  void read_inside(int64_t offset, std::span<char> into) const override {
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
  }

 private:
  std::string bytes_;
};

}  // namespace renkei::data
