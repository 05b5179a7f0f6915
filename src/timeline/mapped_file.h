#pragma once

#include <cstddef>
#include <filesystem>

namespace renkei::timeline {

// A file in memory that grows: what is written there is in the file, also when the process is
// killed the next moment, and no write costs a system call. Room is reserved before it is used, so
// that a full disk is a data Error here and not a signal later.
class MappedFile {
 public:
  MappedFile(std::filesystem::path path, size_t bytes);  // a new file, zero
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  void grow(size_t bytes);  // what was there may have moved
  std::byte* data() { return data_; }
  size_t size() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace renkei::timeline
