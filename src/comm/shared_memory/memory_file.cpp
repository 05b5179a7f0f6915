#include "comm/shared_memory/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace renkei::comm {

MemoryFile MemoryFile::create(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t padded = (bytes + page - 1) / page * page;
  MemoryFile file(::memfd_create("renkei", MFD_CLOEXEC), padded);
  if (file.file_ < 0 || ::ftruncate(file.file_, static_cast<off_t>(padded)) != 0)
    throw Error(ErrorCode::memory,
                fmt::format("the system gives no {} bytes of memory that ranks could share: {}",
                            bytes, std::strerror(errno)));
  return file;
}

MemoryFile MemoryFile::open(const MemoryHandle& handle) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.file);
  MemoryFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC), handle.bytes);
  if (file.file_ < 0)
    throw Error(ErrorCode::communication,
                fmt::format("the memory of process {} cannot be reached: {} ({})", handle.process,
                            std::strerror(errno), path),
                "ranks of a host must be of the same user and see each other's processes");
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), bytes_(other.bytes_) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) ::close(file_);
}

MemoryHandle MemoryFile::handle() const {
  return {.process = ::getpid(), .file = file_, .bytes = bytes_};
}

MemoryMap::MemoryMap(std::span<const MemoryFile> files) {
  for (const MemoryFile& file : files) bytes_ += file.bytes();
  void* const place =
      ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    throw Error(ErrorCode::memory, fmt::format("no room for {} bytes of shared memory", bytes_),
                "a limit of the address space (ulimit -v) may be too small");
  data_ = static_cast<std::byte*>(place);
  size_t at = 0;
  for (const MemoryFile& file : files) {
    if (::mmap(data_ + at, file.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               file.descriptor(), 0) == MAP_FAILED) {
      ::munmap(data_, bytes_);
      throw Error(ErrorCode::memory, fmt::format("{} bytes of shared memory cannot be mapped: {}",
                                                 file.bytes(), std::strerror(errno)));
    }
    at += file.bytes();
  }
}

MemoryMap::~MemoryMap() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace renkei::comm
