// How much work is an op? From the shapes of a recording, for estimates with a device's roofline.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

namespace renkei::model {

struct Work {
  double flops = 0;
  double traffic_bytes = 0;  // read and written
  int64_t made_bytes = 0;    // of new tensors; views are none
};

// Of one operation, forward. Products (convolutions, dense layers, matrix products) count their
// multiplications and additions, everything else one operation for each value that it makes.
Work work_of(const torch::jit::Node* node);

}  // namespace renkei::model
