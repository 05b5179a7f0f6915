// The graph of the network that `renkei train --model` would train, with its loss and rewritten as
// there, so that a plan of the one is a plan of the other.
#pragma once

#include "base/settings.h"
#include "capture/open_network.h"
#include "graph/graph.h"
#include "shard/shard.h"

namespace renkei::job {

// A network with the loss of random data, before and after the rewrites.
struct PlannedNetwork {
  capture::OpenNetwork open;
  networks::LossOptions loss;
};
PlannedNetwork planned_network(const Settings& settings);

// Its work is counted, for a machine that is not this one: needs neither values nor Torch.
graph::Graph estimated_graph(const Settings& settings);
// The same of a program, and of the part that one rank of a tensor group computes.
graph::Graph estimated_graph(const Settings& settings, const program::Program& training,
                             const shard::ShardOptions& part = {});

}  // namespace renkei::job
