// A zip file as PyTorch writes it (torch.save, torch.export.save): everything below one folder,
// nothing compressed, a record of the byte order.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/source/zip.h"

namespace renkei::capture {

class Archive {
 public:
  // Throws a data Error for what is no such file, with `hint`.
  Archive(std::shared_ptr<const data::ByteFile> file, const std::string& hint);

  const std::string& name() const { return file_->name(); }
  const std::shared_ptr<const data::ByteFile>& file() const { return file_; }
  const std::string& root() const { return root_; }  // the folder, without a slash

  // Below the folder; null: not there. A compressed one is a data Error.
  const data::ZipMember* find(std::string_view path) const;
  bool has(std::string_view path) const { return members_.contains(std::string(path)); }
  std::vector<std::string> list(std::string_view prefix) const;  // sorted
  std::string read(std::string_view path, int64_t most_bytes) const;

 private:
  void find_root(const std::vector<data::ZipMember>& members, const std::string& hint);
  void check_byte_order() const;

  std::shared_ptr<const data::ByteFile> file_;
  std::string root_;
  std::unordered_map<std::string, data::ZipMember> members_;
};

}  // namespace renkei::capture
