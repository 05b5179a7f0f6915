#include "data/storage/local_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace renkei::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

}  // namespace

LocalWriter::LocalWriter(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {
  const auto directory = std::filesystem::path(path_).parent_path();
  if (!directory.empty()) make_directories(directory);
  descriptor_ =
      ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0) throw_file_error("create", partial_, errno);
}

LocalWriter::~LocalWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LocalWriter::append(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void LocalWriter::flush() {
  for (std::string_view rest = buffer_; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", partial_, errno);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void LocalWriter::finish() {
  flush();
  if (::fsync(descriptor_) != 0) throw_file_error("write", partial_, errno);
  // A network file system may report only here that it has no space.
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write", partial_, errno);
  if (std::rename(partial_.c_str(), path_.c_str()) != 0)
    throw_file_error("rename to", path_, errno);
}

}  // namespace renkei::data
