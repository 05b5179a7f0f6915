// How much work is an operation? From its sizes alone, for estimates by a device's roofline and for
// the FLOPs that people compare. The one place that counts them.
#pragma once

#include "program/program.h"

namespace renkei::program {

struct Work {
  double flops = 0;
  double products = 0;       // the part of them that published figures count
  double traffic_bytes = 0;  // read and written
  int64_t made_bytes = 0;    // of new tensors; views and results in place are none

  // What the ranks of a tensor group exchange (shard/shard.h): an allreduce is two halves, a
  // reduce-scatter or an all-gather is one. The bytes are of whole tensors, summed over the halves.
  struct Exchange {
    int halves = 0;
    double bytes = 0;
  };
  Exchange exchange_forward = {}, exchange_backward = {};
};

// Of one operation, forward. Products (convolutions, dense layers, matrix products, attention,
// recurrent layers) count a multiplication with its addition as 2; everything else is one
// operation for each value that it makes, and views are none.
Work work_of(const Program& program, const Op& op, const SymbolValues& symbols);

}  // namespace renkei::program
