// GELU, y = v Φ(v) with v = x + bias: Φ is the distribution of a normal number, or its
// approximation by a tanh. The backward direction computes Φ again, so that nothing but x is kept.
#pragma once

#include "compute/rows.h"

namespace renkei::compute {

enum class Gelu { erf, tanh };

// `bias`, for each column, may be null. y may be x.
void gelu_forward(const RowShape& shape, Gelu kind, const float* x, const float* bias, float* y);

// The gradient of x; its sums for each column to `bias_gradient`, which may be null. x_gradient may
// be y_gradient.
void gelu_backward(const RowShape& shape, Gelu kind, const float* x, const float* bias,
                   const float* y_gradient, float* x_gradient, Write write, float* bias_gradient);

}  // namespace renkei::compute
