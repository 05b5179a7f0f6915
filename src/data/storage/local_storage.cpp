#include "data/storage/local_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "data/storage/local_writer.h"

namespace renkei::data {
namespace {

namespace fs = std::filesystem;

// What O_DIRECT asks of offsets, lengths and memory. A block of the device may be smaller, never
// larger than a page.
constexpr int64_t kAlignment = 4096;

struct FreeAligned {
  void operator()(char* memory) const { std::free(memory); }
};

class LocalFile : public ByteFile {
 public:
  LocalFile(std::string name, int descriptor, bool direct, std::shared_ptr<IoCounters> counters)
      : ByteFile(std::move(name), 0),
        descriptor_(descriptor),
        direct_(direct),
        counters_(std::move(counters)) {}
  ~LocalFile() override { ::close(descriptor_); }

  void measure() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw_file_error("read", name(), errno);
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorCode::data, fmt::format("{} is not a file", name()),
                  "give a file, or a directory of a layout that docs/data.md describes");
    set_size(status.st_size);
  }

 protected:
  void read_inside(int64_t offset, std::span<char> into) const override {
    counters_->reads.fetch_add(1, std::memory_order_relaxed);
    if (!direct_) {
      read_all(offset, into.data(), static_cast<int64_t>(into.size()),
               static_cast<int64_t>(into.size()));
      return;
    }
    const int64_t end = offset + static_cast<int64_t>(into.size());
    const int64_t begin = offset / kAlignment * kAlignment;
    const int64_t length = (end - begin + kAlignment - 1) / kAlignment * kAlignment;
    const std::unique_ptr<char, FreeAligned> block(static_cast<char*>(
        std::aligned_alloc(static_cast<size_t>(kAlignment), static_cast<size_t>(length))));
    if (!block) throw Error(ErrorCode::memory, "there is no memory for a direct read");
    read_all(begin, block.get(), length, end - begin);
    std::memcpy(into.data(), block.get() + (offset - begin), into.size());
  }

 private:
  // At least `needed` of the `length` bytes: the last block of a file is a part of one.
  void read_all(int64_t offset, char* into, int64_t length, int64_t needed) const {
    int64_t done = 0;
    while (done < needed) {
      const ssize_t count =
          ::pread(descriptor_, into + done, static_cast<size_t>(length - done), offset + done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        throw Error(ErrorCode::data,
                    fmt::format("could not read {} bytes of {} at offset {}: {}", needed, name(),
                                offset, std::strerror(errno)),
                    "check the disk or the network file system that holds it");
      if (count == 0)
        throw damaged(name(), offset + done, "the file became shorter while it was read");
      counters_->bytes.fetch_add(count, std::memory_order_relaxed);
      done += count;
    }
  }

  int descriptor_;
  bool direct_;
  std::shared_ptr<IoCounters> counters_;
};

}  // namespace

std::shared_ptr<const ByteFile> LocalStorage::open(const std::string& path) const {
  int descriptor = -1;
  bool direct = options_.direct;
  if (direct) descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (descriptor < 0) {
    direct = false;  // some file systems have no O_DIRECT
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (descriptor < 0) throw_file_error("open", path, errno);
  counters_->opens.fetch_add(1, std::memory_order_relaxed);
  auto file = std::make_shared<LocalFile>(path, descriptor, direct, counters_);
  file->measure();
  // Samples are read in random order: the system's read-ahead would fetch megabytes for each.
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  return file;
}

std::vector<StorageEntry> LocalStorage::list(const std::string& directory) const {
  std::vector<StorageEntry> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;  // a file that vanishes meanwhile is an error when it is opened
    if (entry->is_fifo(ignored) || entry->is_character_file(ignored) ||
        entry->is_block_file(ignored) || entry->is_socket(ignored))
      throw Error(
          ErrorCode::data,
          fmt::format("{} is a pipe, a socket or a device, and not a file", entry->path().string()),
          "take it out of the directory");
    if (entry->is_directory(ignored))
      found.push_back({.name = std::move(name), .directory = true});
    else
      found.push_back({.name = std::move(name),
                       .size = static_cast<int64_t>(
                           entry->is_regular_file(ignored) ? entry->file_size(ignored) : 0)});
  }
  if (error)
    throw Error(ErrorCode::data,
                fmt::format("could not read the directory {}: {}", directory, error.message()),
                "check the path");
  // The order in which a file system lists its files is its own affair.
  std::ranges::sort(found, {}, &StorageEntry::name);
  return found;
}

bool LocalStorage::is_directory(const std::string& path) const {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool LocalStorage::is_file(const std::string& path) const {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::unique_ptr<ByteWriter> LocalStorage::create(const std::string& path) const {
  return std::make_unique<LocalWriter>(path);
}

void LocalStorage::remove(const std::string& path) const {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_file_error("remove", path, errno);
}

std::shared_ptr<void> LocalStorage::lock(const std::string& path) const {
  const fs::path directory = fs::path(path).parent_path();
  if (!directory.empty()) make_directories(directory);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) throw_file_error("create", path, errno);
  std::shared_ptr<void> held(nullptr, [descriptor](void*) { ::close(descriptor); });
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    throw Error(ErrorCode::usage, fmt::format("another run is writing {}", directory.string()),
                "wait for it, or choose another directory");
  return held;
}

std::shared_ptr<const ByteFile> make_unnamed_file(
    const std::string& name,
    const std::function<void(const std::function<void(std::string_view)>& append)>& write) {
  std::string path = (fs::temp_directory_path() / "renkei-XXXXXX").string();
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) throw_file_error("create", path, errno);
  ::unlink(path.c_str());
  auto file = std::make_shared<LocalFile>(name, descriptor, false, std::make_shared<IoCounters>());
  write([&](std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_file_error("write the unpacked copy of", name, errno);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  });
  file->measure();
  return file;
}

}  // namespace renkei::data
