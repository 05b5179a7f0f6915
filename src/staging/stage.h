// Brings a data set to the local storage of every host of a job.
//
// The stream of bytes (stage_plan.h) is cut into blocks. In each round every host reads one block
// that nobody has from the source, and the hosts pass their blocks on to each other (an
// all-gather), so that each byte leaves the source once, however many hosts there are: with H hosts
// a source of rate S and a network of rate N per host, a data set of D bytes takes about max(D / S,
// D / N). A block that some host has from an earlier run comes from there. The next block is read
// while this one is passed on and written. One rank of each host works, the others wait with it.
#pragma once

#include "comm/transport/transport.h"
#include "data/parallel.h"
#include "staging/stage_plan.h"

namespace renkei::staging {

struct StageOptions {
  std::string source;
  std::string directory;  // on each host; "{host}" in it stands for the host's name
  data::StorageOptions storage = {};
  int64_t quota_bytes = 0;  // refuse data sets that are larger; 0: what there is room for
  int64_t block_bytes = int64_t{16} << 20;
  int threads = 4;  // that read the pieces of a block, if it has several
  double timeout_seconds = 300;
  data::Progress progress = nullptr;  // in bytes, on rank 0
};

// The same on all ranks that work; the others have the defaults.
struct StageResult {
  int64_t files = 0;
  int64_t bytes = 0;
  int hosts = 0;
  int64_t read_bytes = 0;    // from the source, by all hosts
  int64_t copied_bytes = 0;  // from hosts that had them from an earlier run
  std::string checksum;      // over all blocks
};

// All ranks together. Checked three times: what arrives has the checksum of what was read, what is
// read back from the disk has it, too, and at the end all hosts have the same.
StageResult stage(comm::Transport& transport, const StageOptions& options);

}  // namespace renkei::staging
