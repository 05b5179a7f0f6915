#include "timeline/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace renkei::timeline {

MappedFile::MappedFile(std::filesystem::path path, size_t bytes)
    : path_(std::move(path)),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw_file_error("create", path_, errno);
  grow(bytes);
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

void MappedFile::grow(size_t bytes) {
  if (bytes <= bytes_) return;
  if (const int reason = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)))
    throw_file_error("reserve room for", path_, reason);
  void* const place =
      data_ ? mremap(data_, bytes_, bytes, MREMAP_MAYMOVE)
            : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (place == MAP_FAILED) throw_file_error("map", path_, errno);
  data_ = static_cast<std::byte*>(place);
  bytes_ = bytes;
}

}  // namespace renkei::timeline
