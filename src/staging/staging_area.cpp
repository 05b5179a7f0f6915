#include "staging/staging_area.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/units.h"
#include "data/storage/local_storage.h"

namespace renkei::staging {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDone = "stage.json", kJournal = "stage.journal", kLock = "stage.lock";

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (value_ < 0) throw_file_error("open", path, errno);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

void write_all(int descriptor, const std::string& path, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
}

Error occupied(const std::string& directory) {
  return Error(ErrorCode::usage, fmt::format("{} already holds something else", directory),
               "choose a new directory, or remove this one first");
}

}  // namespace

StagingArea::StagingArea(std::string directory, const StagePlan& plan)
    : directory_(std::move(directory)),
      plan_(plan),
      checksums_(static_cast<size_t>(plan.blocks())) {
  const auto inside = [&](std::string_view name) { return data::join_path(directory_, name); };
  lock_ = data::LocalStorage().lock(inside(kLock));
  const std::string done = inside(kDone), journal = inside(kJournal);
  if (fs::exists(done)) {
    const auto json = nlohmann::json::parse(read_file(done), nullptr, false);
    if (!json.is_object() || json.value("identity", "") != plan_.identity())
      throw occupied(directory_);
    complete_ = true;
    for (const StagedFile& file : plan_.files()) {
      std::error_code error;
      const auto size = fs::file_size(inside(file.name), error);
      complete_ = complete_ && !error && static_cast<int64_t>(size) == file.size;
    }
    if (!complete_) fs::remove(done);
  }
  if (fs::exists(journal)) {
    load_journal(read_file(journal));
  } else {
    for (const auto& entry : fs::directory_iterator(directory_))
      if (entry.path().filename() != kLock) throw occupied(directory_);
    write_file_atomically(journal, plan_.identity() + "\n");
  }
  journal_.emplace(journal);
}

void StagingArea::load_journal(const std::string& content) {
  std::string_view rest = content;
  const auto line = [&] {
    const size_t end = rest.find('\n');
    const std::string_view found = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    return end == std::string_view::npos ? std::string_view() : found;  // torn: not written
  };
  if (line() != plan_.identity()) throw occupied(directory_);
  while (!rest.empty()) {
    const std::string_view entry = line();
    const size_t blank = std::min(entry.find(' '), entry.size());
    size_t block = checksums_.size();
    uint64_t checksum = 0;
    std::from_chars(entry.data(), entry.data() + blank, block);
    const auto [end, error] = std::from_chars(entry.data() + std::min(blank + 1, entry.size()),
                                              entry.data() + entry.size(), checksum, 16);
    if (error == std::errc{} && end == entry.data() + entry.size() && block < checksums_.size())
      checksums_[block] = checksum;
  }
}

std::string StagingArea::path_of(size_t file) const {
  std::string path = data::join_path(directory_, plan_.files()[file].name);
  return fs::exists(path) ? path : path + ".partial";
}

std::string StagingArea::read(int64_t block) const {
  std::string bytes(static_cast<size_t>(plan_.bytes_of(block)), '\0');
  const data::LocalStorage storage;
  for (const Piece& piece : plan_.pieces(block))
    storage.open(path_of(piece.file))
        ->read(piece.offset, std::span(bytes).subspan(static_cast<size_t>(piece.place),
                                                      static_cast<size_t>(piece.length)));
  return bytes;
}

bool StagingArea::check(int64_t block) {
  auto& recorded = checksums_[static_cast<size_t>(block)];
  if (!recorded) return false;
  try {
    if (Checksum().add(read(block)).value() == *recorded) return true;
  } catch (const Error&) {
    // A file that vanished or became shorter: copied again.
  }
  recorded.reset();
  return false;
}

void StagingArea::write(int64_t block, std::string_view bytes, uint64_t checksum) {
  for (const Piece& piece : plan_.pieces(block)) {
    const StagedFile& file = plan_.files()[piece.file];
    const std::string path = path_of(piece.file);
    if (file.name.find('/') != std::string::npos) make_directories(fs::path(path).parent_path());
    const Descriptor descriptor(path, O_WRONLY | O_CREAT);
    // All of the space at once: a disk that is full says so now, and not after hours.
    if (piece.offset == 0 && ::fallocate(descriptor.value(), 0, 0, file.size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
      throw_file_error("write", path, errno);
    write_all(descriptor.value(), path,
              bytes.substr(static_cast<size_t>(piece.place), static_cast<size_t>(piece.length)),
              piece.offset);
  }
  checksums_[static_cast<size_t>(block)] = checksum;
  journal_->append(fmt::format("{} {:016x}\n", block, checksum));
}

void StagingArea::require_space(int64_t bytes) const {
  struct statvfs status {};
  if (::statvfs(directory_.c_str(), &status) != 0) throw_file_error("read", directory_, errno);
  const auto available =
      static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
  if (bytes > available)
    throw Error(ErrorCode::data,
                fmt::format("staging takes {}, and {} has {} left", format_size(bytes), directory_,
                            format_size(available)),
                "make room, or choose another directory");
}

void StagingArea::sync() const {
  for (size_t i = 0; i < plan_.files().size(); ++i) {
    const std::string path = path_of(i);
    if (!fs::exists(path)) continue;  // an empty file, which no block has made
    const Descriptor descriptor(path, O_RDONLY);
    if (::fsync(descriptor.value()) != 0) throw_file_error("write", path, errno);
    ::posix_fadvise(descriptor.value(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

void StagingArea::finish() const {
  for (size_t i = 0; i < plan_.files().size(); ++i) {
    const StagedFile& file = plan_.files()[i];
    const std::string path = data::join_path(directory_, file.name), partial = path + ".partial";
    if (file.size == 0) {
      make_directories(fs::path(path).parent_path());
      write_file_atomically(path, "");
    } else if (!fs::exists(path) && std::rename(partial.c_str(), path.c_str()) != 0) {
      throw_file_error("rename to", path, errno);
    }
  }
  write_file_atomically(
      data::join_path(directory_, kDone),
      nlohmann::ordered_json{
          {"identity", plan_.identity()}, {"files", plan_.files().size()}, {"bytes", plan_.bytes()}}
              .dump(2) +
          "\n");
}

}  // namespace renkei::staging
