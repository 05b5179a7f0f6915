#pragma once

#include <string>

#include "base/philox.h"
#include "plan/search.h"
#include "tests/graph/graphs.h"

namespace renkei::test {

// Sanitizers slow a search down ten- to twentyfold: the large tests do less then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Nodes with two devices each; the second half of the nodes has slower devices when `mixed`.
inline cluster::Description small_cluster(int nodes, bool mixed) {
  cluster::Description machine{.name = "small"};
  machine.kinds = {{.name = "fast",
                    .flops_per_second = 2e12,
                    .memory_bytes = int64_t{1} << 40,
                    .memory_bytes_per_second = 100e9},
                   {.name = "slow",
                    .flops_per_second = 1e12,
                    .memory_bytes = int64_t{1} << 40,
                    .memory_bytes_per_second = 50e9}};
  const comm::LinkCost inside{2e-6, 5e9};
  machine.nodes = {{.count = mixed ? nodes - nodes / 2 : nodes, .devices = 2, .link = inside}};
  if (mixed && nodes > 1)
    machine.nodes.push_back({.count = nodes / 2, .devices = 2, .kind = 1, .link = inside});
  machine.interconnect.link = {10e-6, 1e9};
  return machine;
}

inline plan::Problem small_problem(graph::Graph graph, int devices, int64_t batch, bool mixed) {
  plan::Problem problem{.graph = std::move(graph),
                        .machine = small_cluster((devices + 1) / 2, mixed),
                        .batch = batch,
                        .bucket_bytes = 1 << 20};
  problem.devices = places(problem.machine, devices);
  return problem;
}

}  // namespace renkei::test
