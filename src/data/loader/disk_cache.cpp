#include "data/loader/disk_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/checksum.h"
#include "base/error.h"

namespace renkei::data {
namespace {

bool write_all(int descriptor, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

bool read_all(int descriptor, std::string& into, int64_t offset) {
  for (size_t done = 0; done < into.size();) {
    const ssize_t count = ::pread(descriptor, into.data() + done, into.size() - done,
                                  offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

DiskCache::DiskCache(int64_t samples, const std::string& directory, int64_t limit_bytes)
    : limit_bytes_(limit_bytes) {
  const std::filesystem::path place =
      directory.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(directory);
  std::error_code ignored;  // whatever it is, the file can't be made either
  std::filesystem::create_directories(place, ignored);
  std::string path = (place / "renkei-cache-XXXXXX").string();
  descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor_ < 0)
    throw Error(
        ErrorCode::data,
        fmt::format("could not make a cache in {}: {}", place.string(), std::strerror(errno)),
        "set data.cache_directory to a directory that can be written");
  ::unlink(path.c_str());
  places_.resize(static_cast<size_t>(samples));
}

DiskCache::~DiskCache() {
  ::close(descriptor_);
}

std::shared_ptr<const std::string> DiskCache::find(int64_t sample) const {
  const auto index = static_cast<size_t>(sample);
  Place place;
  {
    const std::lock_guard lock(locks_[index % kLocks]);
    place = places_[index];
  }
  if (place.offset < 0) return nullptr;
  auto bytes = std::make_shared<std::string>(static_cast<size_t>(place.length), '\0');
  if (!read_all(descriptor_, *bytes, place.offset) ||
      Checksum().add(*bytes).value() != place.checksum)
    return nullptr;
  return bytes;
}

bool DiskCache::offer(int64_t sample, const std::string& bytes) {
  const auto index = static_cast<size_t>(sample);
  const auto length = static_cast<int64_t>(bytes.size());
  if (is_full_) return false;
  {
    const std::lock_guard lock(locks_[index % kLocks]);
    if (places_[index].offset >= 0) return true;
  }
  const int64_t offset = end_.fetch_add(length);
  if (offset + length > limit_bytes_ || !write_all(descriptor_, bytes, offset)) {
    is_full_ = true;
    return false;
  }
  const std::lock_guard lock(locks_[index % kLocks]);
  places_[index] = {offset, length, Checksum().add(bytes).value()};
  return true;
}

}  // namespace renkei::data
