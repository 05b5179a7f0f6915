#pragma once

#include <functional>

#include "data/storage/storage.h"

namespace renkei::data {

class LocalStorage : public Storage {
 public:
  explicit LocalStorage(const StorageOptions& options = {}) : options_(options) {}

  std::shared_ptr<const ByteFile> open(const std::string& path) const override;
  std::vector<StorageEntry> list(const std::string& directory) const override;
  bool is_directory(const std::string& path) const override;
  bool is_file(const std::string& path) const override;
  std::unique_ptr<ByteWriter> create(const std::string& path) const override;
  void remove(const std::string& path) const override;
  std::shared_ptr<void> lock(const std::string& path) const override;

 private:
  StorageOptions options_;
};

// A new file without a name, in $TMPDIR or /tmp: it is gone when it is closed, also by a crash. For
// what can't be read at an offset as it is. `write` is called with a function that appends.
std::shared_ptr<const ByteFile> make_unnamed_file(
    const std::string& name,
    const std::function<void(const std::function<void(std::string_view)>& append)>& write);

}  // namespace renkei::data
