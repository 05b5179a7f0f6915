#pragma once

#include <memory>
#include <vector>

#include "data/parallel.h"
#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

struct PackOptions {
  std::string directory;  // or s3://bucket/prefix
  StorageOptions storage = {};
  int64_t shard_bytes = int64_t{256} << 20;  // about; measured before any change of the samples
  int resize = 0;        // images whose shorter side is longer get this one; 0: as they are
  int quality = 90;      // of JPEGs that are written anew
  bool baseline = true;  // progressive JPEGs are rewritten without loss: they decode 3 × as fast
  double raw_share = 0;  // of the images that are stored as pixels: more to read, nothing to decode
  int threads = 0;
  Progress progress = nullptr;
};

struct PackInput {
  std::string name;  // of the shards: "train" makes train-000000.tar …
  const Source& source;
};

struct PackResult {
  int64_t samples = 0;
  int64_t shards = 0;
  int64_t shards_found = 0;  // finished by an earlier run that was interrupted
  int64_t bytes = 0;
  std::string checksum;  // of all samples and labels, in their order
};

// Writes tar shards with indices, and dataset.json at the end. One thread per shard. A run that was
// interrupted is continued: finished shards are kept if source and options are the same. The result
// does not depend on the number of threads or interruptions.
PackResult pack(const std::vector<PackInput>& inputs, const PackOptions& options);

}  // namespace renkei::data
