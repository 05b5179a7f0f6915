// What the ops of a network cost on this machine, measured one by one.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/graph.h"
#include "run/compute_options.h"
#include "run/model.h"

namespace renkei::run {

struct OpCostOptions {
  int64_t samples = 2;  // in a micro-batch; measured for these and for about half as many
  int repetitions = 3;  // the shortest time counts
  double slowdown = 1;  // of each time, where more ranks than cores will run at once
  ComputeOptions compute = {};
  std::function<void(int64_t done, int64_t total)> progress = {};
  // Samples to compute with, by the names of the program's inputs; zeros where there are none. An
  // operation whose work depends on values (lengths of sequences) may not like zeros.
  std::map<std::string, torch::Tensor> inputs = {};
};

// Runs the ops of a training program one after the other, forward and backward. Needs the memory
// pools (run/memory.h). The state stays as it is; what has no memory gets it only while it is
// measured.
graph::Graph measured_graph(Model& model, const OpCostOptions& options);

}  // namespace renkei::run
