#pragma once

#include "cluster/description.h"

namespace renkei::cluster {

// What a core and the memory of this machine do, measured in about a tenth of a second.
struct MachineSpeed {
  int cores = 1;                       // that this process may use
  double core_flops_per_second = 1;    // multiply-adds of 32 bits in vectors, counted as two
  double memory_bytes_per_second = 1;  // read and written by all cores together
  int64_t memory_bytes = 0;            // available now
};
MachineSpeed measure_machine();

// This machine as a cluster of one node whose cores and memory are divided among `devices` ranks.
Description local_machine(const MachineSpeed& speed, int devices);

}  // namespace renkei::cluster
