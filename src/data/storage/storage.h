// Where data sets live. Sources know nothing else of it, so that another kind of storage is one
// more class beside LocalStorage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/s3/s3_options.h"
#include "data/storage/byte_file.h"

namespace renkei::data {

struct StorageOptions {
  bool direct = false;  // O_DIRECT: past the page cache of the system
  S3Options s3 = {};    // for paths that start with s3://
};

struct StorageEntry {
  std::string name;  // without the directory
  bool directory = false;
  int64_t size = 0;

  bool operator==(const StorageEntry&) const = default;
};

// Something on its way to storage. It appears, complete, when it is finished; what is given up
// before leaves nothing that a reader would take for it.
class ByteWriter {
 public:
  virtual ~ByteWriter() = default;
  virtual void append(std::string_view bytes) = 0;
  virtual void finish() = 0;
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

  // Directories on the way are made.
  virtual std::unique_ptr<ByteWriter> create(const std::string& path) const = 0;
  virtual void remove(const std::string& path) const = 0;  // nothing there: nothing to do
  // Until the result is dropped, no other process gets this lock: it has a usage Error. Object
  // storage has no locks, and there nothing is held.
  virtual std::shared_ptr<void> lock(const std::string& path) const = 0;

  std::string read(const std::string& path) const;
  void write(const std::string& path, std::string_view content) const;

  const IoCounters& counters() const { return *counters_; }

 protected:
  // Files outlive the Storage that opened them.
  std::shared_ptr<IoCounters> counters_ = std::make_shared<IoCounters>();
};

// For the kind of place that `path` names: s3://… is object storage, all else the file system.
std::shared_ptr<const Storage> open_storage(std::string_view path,
                                            const StorageOptions& options = {});

std::string join_path(std::string_view directory, std::string_view name);

}  // namespace renkei::data
