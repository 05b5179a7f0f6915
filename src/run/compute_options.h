// Which fast ways of computing are on. Each can be switched off, and then Torch's own does the same
// work: that is the reference in the tests, and the way to find out what is at fault.
#pragma once

#include "base/settings.h"

namespace renkei::run {

struct ComputeOptions {
  bool winograd = true;          // 3 × 3 convolutions with fewer multiplications
  bool dense = true;             // dense layers of few samples without rearranging the weights
  bool products = true;          // products of matrices by oneDNN, not by Torch's BLAS
  bool direct_gradients = true;  // kernels write gradients where they are reduced
};

ComputeOptions compute_options(const Settings& settings);

}  // namespace renkei::run
