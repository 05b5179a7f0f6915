#include "plan/memory.h"

#include <algorithm>

namespace renkei::plan {

StageMemory& StageMemory::operator+=(const StageMemory& other) {
  parameters += other.parameters;
  gradients += other.gradients;
  optimizer += other.optimizer;
  activations += other.activations;
  // One op computes at a time.
  workspace = std::max(workspace, other.workspace);
  buffers += other.buffers;
  return *this;
}

StageMemory stage_memory(const graph::Cuts& cuts, size_t from, size_t to,
                         const MemoryOptions& options) {
  const graph::RangeBytes bytes = cuts.bytes(from, to);
  const double samples = options.samples;
  const double inputs = cuts.crossing_bytes(from).at(samples);
  const double outputs = cuts.crossing_bytes(to).at(samples);
  const double saved = bytes.saved.at(samples);
  const int owners = options.shared_parameters ? options.replicas : 1;
  StageMemory memory{.parameters = bytes.trainable / owners + bytes.buffers,
                     .gradients = bytes.trainable};
  memory.optimizer = options.optimizer_state * bytes.trainable /
                     (options.sharded_optimizer ? options.replicas : 1);
  const int whole = options.in_flight.whole, put_off = options.in_flight.all - whole;
  memory.activations = whole * inputs + put_off * bytes.deferred.at(samples);
  if (options.recompute) {
    Segments segments = planned_segments(cuts, from, to, samples, whole);
    memory.activations += segments.bytes(whole);
    memory.segment_cuts = std::move(segments.cuts);
  } else {
    memory.activations += whole * saved;
  }
  memory.workspace = cuts.workspace_bytes(from, to) * samples / options.graph_batch;
  memory.buffers = 2 * (inputs + outputs);
  return memory;
}

}  // namespace renkei::plan
