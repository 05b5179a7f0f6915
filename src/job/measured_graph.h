#pragma once

#include "base/settings.h"
#include "graph/graph.h"
#include "shard/shard.h"

namespace renkei::job {

struct MeasureRequest {
  int64_t samples = 8;            // of the micro-batches that are measured
  bool quiet = false;             // no progress
  shard::ShardOptions part = {};  // that one rank of a tensor group computes
};

// The ops of the network that model.name asks for, with its loss, measured on one core of this
// machine. An Error in a renkei without PyTorch.
graph::Graph measured_graph(const Settings& settings, const MeasureRequest& request);

}  // namespace renkei::job
