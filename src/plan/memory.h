// What a rank keeps in memory for a stage, part by part:
//
//   parameters    trainable ones, or its share where replicas have them in common, and buffers
//   gradients     as much as the trainable parameters
//   optimizer     `optimizer_state` bytes for each byte of them, divided among the replicas when
//                 the optimizer is sharded
//   activations   the stage's inputs and what forward saves, for each micro-batch in flight; with
//                 recompute what crosses between segments (segments.h), and what one segment saves
//                 for the micro-batch that is being recomputed; after backward, until the gradients
//                 of parameters are computed, what these need
//   workspace     the largest of an op
//   buffers       what is received and sent, twice, so that transfers overlap with computing;
//                 gradients are reduced where they lie, by pieces that do not count
#pragma once

#include <cstdint>

#include "graph/cuts.h"
#include "plan/segments.h"
#include "plan/step_model.h"

namespace renkei::plan {

struct StageMemory {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double workspace = 0;
  double buffers = 0;
  std::vector<size_t> segment_cuts = {};  // with recompute

  double total() const {
    return parameters + gradients + optimizer + activations + workspace + buffers;
  }
  StageMemory& operator+=(const StageMemory& other);
};

struct MemoryOptions {
  double samples = 1;  // of a micro-batch, on the replica that has the most
  double graph_batch = 1;
  InFlight in_flight{.all = 1, .whole = 1};
  int replicas = 1;
  bool recompute = false;
  bool sharded_optimizer = false;
  bool shared_parameters = false;  // the replicas have them in common
  double optimizer_state = 1;
};

StageMemory stage_memory(const graph::Cuts& cuts, size_t from, size_t to,
                         const MemoryOptions& options);

}  // namespace renkei::plan
