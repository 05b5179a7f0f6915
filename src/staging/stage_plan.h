// What is staged: the files of a data set, one after the other as a stream of bytes that is cut
// into blocks. A block is a piece of a large file, or many small ones, so that the work does not
// depend on how a data set is divided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/storage.h"

namespace renkei::staging {

struct StagedFile {
  std::string name;  // below the directory; with slashes
  int64_t size = 0;
  int64_t begin = 0;  // in the stream
};

struct Piece {
  size_t file = 0;
  int64_t offset = 0;  // in the file
  int64_t length = 0;
  int64_t place = 0;  // in the block
};

class StagePlan {
 public:
  // Lists a file, or all files of a directory and of those below it. What is hidden is left out.
  static StagePlan of(const data::Storage& storage, const std::string& source, int64_t block_bytes);

  std::string text() const;
  static StagePlan parse(std::string_view text);

  const std::vector<StagedFile>& files() const { return files_; }
  std::string source_of(size_t file) const;  // its path at the source
  int64_t bytes() const;
  int64_t blocks() const;
  int64_t bytes_of(int64_t block) const;
  std::vector<Piece> pieces(int64_t block) const;  // none of them empty
  // The same for the same names, sizes and, of a packed data set, checksums.
  const std::string& identity() const { return identity_; }

 private:
  void add_directory(const data::Storage& storage, const std::string& directory,
                     const std::string& prefix);
  void add(std::string name, int64_t size);
  void identify(std::string_view description);

  std::string source_;
  bool single_file_ = false;
  int64_t block_bytes_ = 0;
  std::string identity_;
  std::vector<StagedFile> files_;
};

}  // namespace renkei::staging
