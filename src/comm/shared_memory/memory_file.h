// Memory without a name that other processes of the host can map: Linux's memfd. It takes no room
// in /dev/shm and ends with the last process that has it, however that ends, so that nothing is
// ever left behind. Others open it through /proc, by the process and its number there.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace renkei::comm {

// What another process needs to know. Plain bytes.
struct MemoryHandle {
  pid_t process = 0;
  int file = -1;
  size_t bytes = 0;
};

class MemoryFile {
 public:
  // Zeroes; pages are taken when they are touched. A memory Error when the system refuses.
  static MemoryFile create(size_t bytes);
  // Of another process, or of this one. A communication Error with what to do when it cannot be
  // reached.
  static MemoryFile open(const MemoryHandle& handle);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  MemoryHandle handle() const;  // stays valid as long as this object lives
  int descriptor() const { return file_; }
  size_t bytes() const { return bytes_; }

 private:
  MemoryFile(int file, size_t bytes) : file_(file), bytes_(bytes) {}
  int file_ = -1;
  size_t bytes_ = 0;
};

// All of some files, side by side in the order given, each as long as a multiple of the page.
class MemoryMap {
 public:
  explicit MemoryMap(std::span<const MemoryFile> files);
  explicit MemoryMap(const MemoryFile& file) : MemoryMap(std::span(&file, 1)) {}
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace renkei::comm
