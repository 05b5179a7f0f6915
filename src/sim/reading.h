// Does training wait for its data? A node reads what its devices need for a step while they compute
// the one before. Part of a data set that was read before is still in memory: of a set of d bytes
// in random order, c bytes of page cache hold about c/d (whatever was thrown out was as likely to
// come next as what was kept).
#pragma once

#include "cluster/description.h"

namespace renkei::sim {

struct DataSet {
  double sample_bytes = 0;  // 0: nothing is read
  double bytes = 0;         // of all samples; 0: not known, so nothing is kept in memory
  bool file_per_sample = false;
};

struct Reading {
  double seconds = 0;                  // of a step, from storage
  double cached_share = 0;             // of the bytes
  double needed_bytes_per_second = 0;  // by a node, so that nobody waits
};

// For a step of `samples_per_node` that takes `step_seconds` without reading.
Reading read_step(const cluster::Description& machine, const DataSet& data, double samples_per_node,
                  double step_seconds, bool first_epoch);

}  // namespace renkei::sim
