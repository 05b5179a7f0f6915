#include "data/storage/storage.h"

#include "data/s3/s3_storage.h"
#include "data/storage/local_storage.h"

namespace renkei::data {

std::string Storage::read(const std::string& path) const {
  const auto file = open(path);
  return file->read(0, file->size());
}

void Storage::write(const std::string& path, std::string_view content) const {
  const auto writer = create(path);
  writer->append(content);
  writer->finish();
}

std::shared_ptr<const Storage> open_storage(std::string_view path, const StorageOptions& options) {
  if (path.starts_with("s3://")) return open_s3_storage(options.s3);
  return std::make_shared<LocalStorage>(options);
}

std::string join_path(std::string_view directory, std::string_view name) {
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

}  // namespace renkei::data
