#include "data/pack/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "data/source/tar.h"

namespace renkei::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::string with(const std::filesystem::path& stem, std::string_view extension) {
  return fmt::format("{}{}", stem.string(), extension);
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path stem) : stem_(std::move(stem)) {
  const std::string path = with(stem_, ".tar.partial");
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_file_error("create", path, errno);
}

ShardWriter::~ShardWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ShardWriter::write(std::string_view bytes) {
  buffer_ += bytes;
  offset_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() >= kBufferBytes) flush();
}

void ShardWriter::flush() {
  for (std::string_view rest = buffer_; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", with(stem_, ".tar.partial"), errno);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void ShardWriter::add_member(const std::string& key, std::string_view extension,
                             std::string_view content) {
  const std::string name = fmt::format("{}.{}", key, extension);
  const auto size = static_cast<int64_t>(content.size());
  write(make_tar_header(name, size));
  samples_.back().push_back(
      {.extension = std::string(extension), .offset = offset_, .size = size, .name = name});
  write(content);
  write(std::string(static_cast<size_t>(tar_padding(size)), '\0'));
}

void ShardWriter::add(const std::string& key, std::string_view extension, std::string_view content,
                      int64_t label, uint32_t width, uint32_t height) {
  samples_.emplace_back();
  add_member(key, extension, content);
  index_.push_back({.offset = samples_.back()[0].offset,
                    .size = samples_.back()[0].size,
                    .checksum = Checksum().add(content).value(),
                    .label = static_cast<int32_t>(label),
                    .width = width,
                    .height = height});
  if (label >= 0) add_member(key, "cls", std::to_string(label));
}

void ShardWriter::finish() {
  write(std::string(1024, '\0'));
  flush();
  const std::string partial = with(stem_, ".tar.partial"), path = with(stem_, ".tar");
  if (::fsync(descriptor_) != 0) throw_file_error("write", partial, errno);
  // A network file system may report only here that it has no space.
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write", partial, errno);
  if (std::rename(partial.c_str(), path.c_str()) != 0) throw_file_error("rename to", path, errno);
  write_file_atomically(with(stem_, ".idx"), format_dali_index(samples_));
  write_file_atomically(with(stem_, ".index"), format_shard_index(index_, offset_));
}

}  // namespace renkei::data
