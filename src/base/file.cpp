#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"

namespace renkei {
namespace {

// A descriptor that closes itself.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

void sync_directory(const std::filesystem::path& directory) {
  // Without this the rename itself may be lost with the power. Not every file system allows it.
  Descriptor descriptor{::open(directory.c_str(), O_RDONLY | O_DIRECTORY)};
  if (descriptor.value >= 0) ::fsync(descriptor.value);
}

// Writes all of it, in one call unless the system takes less; returns how many bytes went out.
// On a failure that is less than all, and errno says why.
size_t write_all(int descriptor, std::string_view content) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t written = ::write(descriptor, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path aside =
      path.string() + fmt::format(".{}.partial", static_cast<int64_t>(::getpid()));
  const auto clean_up_and_fail = [&](std::string_view doing) {
    const int reason = errno;
    ::unlink(aside.c_str());
    throw_file_error(doing, path, reason);
  };
  {
    // Never through a link that someone else has put there.
    ::unlink(aside.c_str());
    Descriptor file{::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file.value < 0) throw_file_error("create", aside, errno);
    if (write_all(file.value, content) < content.size() || ::fsync(file.value) != 0)
      clean_up_and_fail("write");
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) clean_up_and_fail("rename to");
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

std::string read_file(const std::filesystem::path& path) {
  // Not through std::ifstream, for which a disk that fails half-way looks like a short file.
  // A pipe would have us wait for whoever writes to it.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) throw_file_error("read", path, errno);
  struct stat status {};
  if (::fstat(file.value, &status) != 0) throw_file_error("read", path, errno);
  // A device may never end.
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw Error(ErrorCode::data,
                fmt::format("{} is a pipe or a device, and not a file", path.string()),
                "copy what it gives to a file first");
  std::string content;
  std::vector<char> block(256 * 1024);
  while (true) {
    const ssize_t count = ::read(file.value, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_file_error("read", path, errno);
    if (count == 0) return content;
    content.append(block.data(), static_cast<size_t>(count));
  }
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_file_error("create the directory", path, error.value());
}

AppendFile::AppendFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw_file_error("open", path_, errno);
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

void AppendFile::append(std::string_view bytes) {
  const size_t written = write_all(descriptor_, bytes);
  if (written == bytes.size()) return;
  const int reason = errno;
  // The position is the end of what we wrote, even when others append to the same file.
  const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
  // If this fails too, a torn piece stays, as after a crash, and readers pass over it.
  if (written > 0 && end >= 0)
    std::ignore = ::ftruncate(descriptor_, end - static_cast<off_t>(written));
  throw_file_error("write", path_, reason);
}

void AppendFile::cut(int64_t size_bytes) {
  if (::ftruncate(descriptor_, size_bytes) != 0) throw_file_error("shorten", path_, errno);
}

void AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) throw_file_error("sync", path_, errno);
}

void throw_file_error(std::string_view doing, const std::filesystem::path& path, int reason) {
  std::string hint;
  if (reason == ENOSPC) hint = "free some space on that file system, or choose another directory";
  if (reason == EACCES || reason == EROFS) hint = "choose a directory that you may write to";
  if (reason == ENOENT) hint = "check the path";
  throw Error(ErrorCode::data,
              fmt::format("could not {} {}: {}", doing, path.string(), std::strerror(reason)),
              hint);
}

}  // namespace renkei
