#include "data/storage/storage.h"

#include "data/storage/local_storage.h"

namespace renkei::data {

std::shared_ptr<const Storage> open_storage(std::string_view path, const StorageOptions& options) {
  if (path.starts_with("s3://"))
    throw Error(ErrorCode::usage, fmt::format("{}: object storage can't be read yet", path),
                "copy the data set to a file system");
  return std::make_shared<LocalStorage>(options);
}

std::string join_path(std::string_view directory, std::string_view name) {
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

}  // namespace renkei::data
