#pragma once

#include "cluster/description.h"

namespace renkei::sim::test {

// Groups of 4 nodes with 4 devices, round numbers: 10 GB/s inside, one adapter of 5 GB/s.
inline cluster::Description small_machine() {
  return {.name = "small",
          .kinds = {{.name = "card",
                     .flops_per_second = 1e12,
                     .memory_bytes = int64_t{16} << 30,
                     .memory_bytes_per_second = 100e9}},
          .nodes = {{.count = 256,
                     .devices = 4,
                     .memory_bytes = int64_t{64} << 30,
                     .link = {2e-6, 10e9}}},
          .interconnect = {.link = {5e-6, 5e9}, .group_nodes = 4, .uplink = {1e-6, 10e9}}};
}

}  // namespace renkei::sim::test
