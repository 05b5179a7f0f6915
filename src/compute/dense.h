// Dense layers for few samples, y = x · wᵀ + bias: the weights are then most of what is read and
// written, and a BLAS spends much on rearranging them. Here they are used as they lie. The gradient
// of x is left to a BLAS, which is fast at it.
#pragma once

#include <cstdint>

#include "compute/convolution.h"

namespace renkei::compute {

struct DenseShape {
  int64_t rows = 0, inputs = 0, outputs = 0;

  // Whether these kernels are for it; more rows are a BLAS's, which then reaches its rate.
  bool suits() const { return rows > 0 && rows <= kMostRows && inputs % 16 == 0; }

  static constexpr int64_t kMostRows = 64;
};

// x: [rows][inputs], w: [outputs][inputs], y: [rows][outputs]. With `relu`, negative results are 0.
void dense_forward(const DenseShape& shape, const float* x, const float* w, const float* bias,
                   bool relu, float* y);
void dense_backward_weights(const DenseShape& shape, const float* x, const float* y_gradient,
                            Write write, float* w_gradient);

}  // namespace renkei::compute
