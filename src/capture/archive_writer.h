// Writes zip files as PyTorch does, so that torch.load and torch.export.load read them: everything
// below one folder, nothing compressed, contents aligned for those who map them into memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/named_tensors.h"
#include "data/storage/storage.h"

namespace renkei::capture {

class ArchiveWriter {
 public:
  // Nothing appears at `path` before finish().
  ArchiveWriter(const std::string& path, std::string root);

  void add(const std::string& path, std::string_view content);
  // A few MiB at a time; it is read twice, because the checksum comes first.
  void add(const std::string& path, int64_t bytes, const ReadBytes& read);
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc32 = 0;
    int64_t bytes = 0, offset = 0;
  };
  void append(std::string_view bytes);

  std::unique_ptr<data::ByteWriter> out_;
  std::string root_;
  std::vector<Member> members_;
  int64_t at_ = 0;
};

}  // namespace renkei::capture
