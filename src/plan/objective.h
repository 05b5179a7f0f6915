// What a layout costs: the times and the memory of its stages, and the time of a step as the
// schedule executes it. This is what the search minimises.
#pragma once

#include <map>

#include "graph/cuts.h"
#include "plan/problem.h"

namespace renkei::plan {

// A layout with its costs.
struct Evaluated {
  Layout layout;
  double seconds = 0;
  std::vector<StageTimes> times;    // of each stage
  std::vector<StageMemory> memory;  // of each group
  // Of each group: it would not fit otherwise. Recomputing only makes a step longer, so it is never
  // done without need.
  std::vector<bool> recompute;
  std::vector<std::vector<size_t>> segment_cuts;  // of each stage, with recompute
  double missing_bytes = 0;  // of the group that lacks the most; 0: everything fits

  bool fits() const { return missing_bytes <= 0; }
};

// Devices that compute the same stages, and what they have in common.
struct GroupCosts {
  int ranks = 1;
  std::vector<size_t> kinds;    // of device, each once
  double memory_bytes = 0;      // of the device that has the least
  double bytes_per_second = 1;  // of memory, of the slowest
  double reduce_latency = 0;    // of a collective of nearly nothing
  double reduce_per_byte = 0;
  bool shares = false;  // parameters, and with them the work and the state of updates

  double sum_latency = 0, sum_per_byte = 0;  // over all devices of the tensor groups

  double reduce_seconds(double bytes, double bucket_bytes) const;
  double sum_seconds(double bytes, double bucket_bytes) const;
};

class Objective {
 public:
  // `problem` and `steps` must outlive it.
  Objective(const Problem& problem, const StepModel& steps, graph::Cuts::Options options);
  Objective(const Problem& problem, const StepModel& steps)
      : Objective(problem, steps, graph::Cuts::Options{}) {}

  const Problem& problem() const { return problem_; }
  const graph::Cuts& cuts() const { return cuts_; }
  const StepModel& steps() const { return steps_; }

  // Whether the numbers fit each other: devices that are there, whole micro-batches, samples for
  // every replica, a schedule that allows the shape.
  bool possible(const Layout& layout) const;
  // Times and memory; `seconds` stays 0.
  Evaluated cost(const Layout& layout) const;
  // And the time of a step, if everything fits.
  Evaluated evaluate(const Layout& layout) const;

  const GroupCosts& group(const DeviceRange& devices) const;

  // Samples of a micro-batch on the replica that has the most.
  double samples(int micro_batches, int replicas) const;
  // All ops for so many samples, each at its shortest on any kind of device.
  double least_work(double samples) const;
  // Without sends. Ties to other stages are reduced over `everyone`.
  StageTimes stage_times(const GroupCosts& group, const GroupCosts& everyone, size_t from,
                         size_t to, double samples, bool recompute, bool sharded) const;
  StageMemory memory(const GroupCosts& group, size_t from, size_t to, double samples,
                     InFlight in_flight, bool recompute, bool sharded) const;

 private:
  int sharing_a_node() const;
  double transfer_seconds(const Layout& layout, int from_group, int to_group,
                          const graph::Line& bytes) const;

  const Problem& problem_;
  const StepModel& steps_;
  graph::Cuts cuts_;
  mutable std::map<DeviceRange, GroupCosts> groups_;
};

}  // namespace renkei::plan
