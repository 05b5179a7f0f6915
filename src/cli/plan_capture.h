#pragma once

#include <string>

#include "base/settings.h"
#include "graph/graph.h"

namespace renkei::cli {

struct CaptureRequest {
  std::string model;    // a built-in network, or a TorchScript file
  bool measure = true;  // or else count its work, for a machine that is not this one
  int64_t samples = 8;  // of the micro-batches that are measured
  bool quiet = false;   // no progress
};

// Records a network with its loss, and measures its ops on one core of this machine or counts their
// work. An Error in a renkei without LibTorch.
graph::Graph captured_graph(Settings settings, const CaptureRequest& request);

}  // namespace renkei::cli
