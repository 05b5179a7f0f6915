#pragma once

#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

// Tar shards in the layout of WebDataset: neighbouring members with the same name up to the first
// dot are a sample, of which one member is the input (jpg, jpeg, png, npy) and, usually, one the
// label (cls, a number in text); others that end in jpg, jpeg, png or npy are fields that are
// called as their extension. Without cls members the directory of a sample in the archive is its
// class, numbered by name over all shards. An index beside a shard, SHARD.index or DALI's
// SHARD.idx, saves the scan.
struct TarSourceOptions {
  std::vector<std::string> shards;            // paths, in the order of their samples
  std::vector<std::string> class_names = {};  // from dataset.json, where there is one
  int threads = 0;
};

std::unique_ptr<Source> open_tar_source(const Storage& storage, const TarSourceOptions& options);

}  // namespace renkei::data
