#pragma once

#include "data/storage/storage.h"
#include "tests/data/memory_file.h"

namespace renkei::data {

// One file, whatever its path; nothing can be written.
class MemoryStorage : public Storage {
 public:
  explicit MemoryStorage(std::string bytes)
      : file_(std::make_shared<const MemoryFile>(std::move(bytes))) {}

  std::shared_ptr<const ByteFile> open(const std::string&) const override { return file_; }
  std::vector<StorageEntry> list(const std::string&) const override { return {}; }
  bool is_directory(const std::string&) const override { return false; }
  bool is_file(const std::string&) const override { return true; }
  std::unique_ptr<ByteWriter> create(const std::string&) const override { return nullptr; }
  void remove(const std::string&) const override {}
  std::shared_ptr<void> lock(const std::string&) const override { return nullptr; }

 private:
  std::shared_ptr<const ByteFile> file_;
};

}  // namespace renkei::data
