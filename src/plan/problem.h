// What is to be planned, and the space of answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/description.h"
#include "graph/costs.h"
#include "graph/graph.h"
#include "plan/memory.h"
#include "plan/step_model.h"

namespace renkei::plan {

// Times are measured for the device that comes first, and are longer on slower ones in proportion
// to their speed; or, when the graph's are estimates, estimated for each kind.
struct Problem {
  graph::Graph graph;
  cluster::Description machine;
  std::vector<cluster::Place> devices;  // that may be used, in this order
  int64_t batch = 1;
  int64_t memory_bytes = 0;    // of each device; 0: what the machine has
  double optimizer_state = 1;  // bytes for each byte of trainable parameters
  double bucket_bytes = 25 << 20;
  // Devices that follow each other in groups of so many compute each op together: everything below
  // counts such groups as one device. The graph is that of one device of a group.
  int tensor = 1;
  std::map<std::string, std::string, std::less<>> tensor_ops = {};  // see Plan
  std::vector<cluster::Place> members = {};  // the devices of all groups, one after the other
  bool even_replicas = false;    // all stages have as many: tensor groups divide samples
  bool use_all_devices = false;  // layouts that leave devices out do not count
  // Replicas on one node have parameters in common and divide the work and the state of updates,
  // whatever Layout::sharded_optimizer says.
  bool replicas_of_a_node_share = false;
};

// Where the replicas of a group are. With `together`, group after group takes the next devices, so
// replicas reduce inside nodes; with `apart`, pipeline after pipeline does (all groups have as many
// replicas), so stages exchange inside nodes.
enum class Placement { together, apart };

// One answer: who computes what, and in which order.
struct Layout {
  ScheduleKind schedule = ScheduleKind::accumulate;
  int micro_batches = 1;
  int chunks = 1;
  bool sharded_optimizer = false;
  Placement placement = Placement::together;
  std::vector<size_t> cuts;   // from 0 to the last; stage s lies between cuts s and s + 1
  std::vector<int> replicas;  // of each group

  int stages() const { return static_cast<int>(cuts.size()) - 1; }
  int groups() const { return static_cast<int>(replicas.size()); }
  int devices() const;
  Shape shape() const {
    return {.kind = schedule, .stages = stages(), .micro_batches = micro_batches, .chunks = chunks};
  }
  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const Layout&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Some of Problem::devices: first, first + stride, …
struct DeviceRange {
  int first = 0, stride = 1, count = 1;

  int operator[](int i) const { return first + i * stride; }
  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const DeviceRange&) const = default;  // NOLINT(modernize-use-nullptr)
};
DeviceRange devices_of(const Layout& layout, int group);

// For each kind of device of the machine, the times of all ops; and last, of each op the shortest.
std::vector<std::vector<graph::Seconds>> seconds_by_kind(const Problem& problem);

// An allreduce among devices, as a line: of nearly nothing, and of buckets.
struct ReduceCosts {
  double latency = 0, per_byte = 0;
};
ReduceCosts reduce_costs(const Problem& problem, const std::vector<cluster::Place>& places);

std::string describe(const Layout& layout);  // "3 stages (2+1+1 devices), 8 micro-batches, 1f1b"

}  // namespace renkei::plan
