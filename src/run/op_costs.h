// What the ops of a network cost on this machine, measured one by one.
#pragma once

#include <functional>

#include "data/dataset.h"
#include "graph/graph.h"
#include "model/network.h"

namespace renkei::run {

struct OpCostOptions {
  int64_t samples = 2;  // in a micro-batch; measured for these and for about half as many
  int repetitions = 3;  // the shortest time counts
  double slowdown = 1;  // of each time, where more ranks than cores will run at once
  std::function<void(int64_t done, int64_t total)> progress = {};
};

// Records the network (run/captures.h) and runs its ops one after the other, forward and backward.
// Needs the memory pools (run/memory.h). The network's state stays as it is.
graph::Graph measured_graph(model::Network& network, model::Objective objective,
                            const data::Dataset& data, const OpCostOptions& options);

// The same without a measurement: with work and memory traffic, for estimates on any device.
graph::Graph estimated_graph(model::Network& network, model::Objective objective,
                             const data::Dataset& data, int64_t samples);

}  // namespace renkei::run
