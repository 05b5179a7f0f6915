// One tar shard in the layout of WebDataset: where the members of its samples stand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/source/shard_index.h"
#include "data/storage/storage.h"

namespace renkei::data {

// The members of a sample that are read, by their extensions. The input is the one that is called
// jpg, jpeg, png or, where there is no image, npy; these may differ from sample to sample. All
// others that end in such a way ("depth.npy", "left.jpg") are fields of their own.
struct TarMembers {
  bool input = false;
  std::vector<std::string> others = {};
};

struct TarPiece {
  int64_t offset = 0;
  int64_t size = -1;  // this sample does not have it
};

struct TarShard {
  std::shared_ptr<const ByteFile> file;
  std::vector<IndexedSample> samples;    // their labels and inputs
  std::vector<TarPiece> others;          // of each sample, in the order of TarMembers
  std::vector<std::string> directories;  // of the samples, while labels are still unknown
  bool checked = false;                  // the inputs have checksums
  int64_t first = 0;                     // number of its first sample
};

// From an index beside the shard, or a scan. `members` is what to look for; null for the first
// shard, whose first sample decides.
struct OpenedShard {
  TarShard shard;
  TarMembers members;
};
OpenedShard open_tar_shard(const Storage& storage, const std::string& path,
                           const TarMembers* members);

}  // namespace renkei::data
