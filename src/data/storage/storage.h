// Where data sets live. Sources know nothing else of it, so that another kind of storage is one
// more class beside LocalStorage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/byte_file.h"

namespace renkei::data {

struct StorageOptions {
  bool direct = false;  // O_DIRECT: past the page cache of the system
};

struct StorageEntry {
  std::string name;  // without the directory
  bool directory = false;
  int64_t size = 0;

  bool operator==(const StorageEntry&) const = default;
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual std::shared_ptr<const ByteFile> open(const std::string& path) const = 0;
  // What is in a directory, sorted by name and without hidden entries; a data Error when it is not
  // a directory. Symbolic links are followed.
  virtual std::vector<StorageEntry> list(const std::string& directory) const = 0;
  virtual bool is_directory(const std::string& path) const = 0;
  virtual bool is_file(const std::string& path) const = 0;

  const IoCounters& counters() const { return *counters_; }

 protected:
  // Files outlive the Storage that opened them.
  std::shared_ptr<IoCounters> counters_ = std::make_shared<IoCounters>();
};

// For the kind of place that `path` names; a usage Error for object storage (s3://…).
std::shared_ptr<const Storage> open_storage(std::string_view path,
                                            const StorageOptions& options = {});

std::string join_path(std::string_view directory, std::string_view name);

}  // namespace renkei::data
