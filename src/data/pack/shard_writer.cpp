#include "data/pack/shard_writer.h"

#include <utility>

#include "base/checksum.h"
#include "data/source/tar.h"

namespace renkei::data {

ShardWriter::ShardWriter(const Storage& storage, std::string stem)
    : storage_(storage), stem_(std::move(stem)), archive_(storage.create(stem_ + ".tar")) {}

void ShardWriter::write(std::string_view bytes) {
  archive_->append(bytes);
  offset_ += static_cast<int64_t>(bytes.size());
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
  archive_->finish();
  storage_.write(stem_ + ".idx", format_dali_index(samples_));
  storage_.write(stem_ + ".index", format_shard_index(index_, offset_));
}

}  // namespace renkei::data
