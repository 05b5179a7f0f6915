// The directory of one host that a data set is staged to.
//
//   NAME.partial      a file that is not complete
//   stage.journal     the identity of the plan, then for each block that was written its number and
//                     its checksum
//   stage.json        there when everything is
//
// A run that was interrupted is continued: blocks of the journal whose bytes still have their
// checksum are kept.
#pragma once

#include <memory>
#include <optional>

#include "base/file.h"
#include "staging/stage_plan.h"

namespace renkei::staging {

class StagingArea {
 public:
  // A usage Error when the directory holds something else, or when another run writes it.
  StagingArea(std::string directory, const StagePlan& plan);

  bool is_complete() const { return complete_; }
  // What the journal says; empty: the block was never written.
  std::optional<uint64_t> checksum(int64_t block) const {
    return checksums_[static_cast<size_t>(block)];
  }
  // Reads it back and compares; what is damaged counts as never written.
  bool check(int64_t block);
  std::string read(int64_t block) const;
  void write(int64_t block, std::string_view bytes, uint64_t checksum);

  // What the disk must still take, and a data Error when it can't.
  void require_space(int64_t bytes) const;
  void sync() const;    // everything is on the disk, and no longer in memory
  void finish() const;  // files get their names, stage.json appears

 private:
  void load_journal(const std::string& content);
  std::string path_of(size_t file) const;  // of the whole file, or else of its part

  std::string directory_;
  const StagePlan& plan_;
  std::shared_ptr<void> lock_;
  bool complete_ = false;
  std::vector<std::optional<uint64_t>> checksums_;
  std::optional<AppendFile> journal_;
};

}  // namespace renkei::staging
