// ReLU, y = max(x, 0), in which a value that is not a number stays one, as in PyTorch; the gradient
// passes where y is one.
#pragma once

#include "compute/blocked.h"
#include "compute/convolution.h"

namespace renkei::compute {

void relu_in_place(int64_t count, float* x);

// The way back through y = ReLU(x + bias) for an image in blocked layout:
// x_gradient = 0 where y is, else y_gradient; bias_gradient = its sum per channel.
void bias_relu_backward(const ImageShape& shape, const float* y, const float* y_gradient,
                        float* x_gradient, Write write, float* bias_gradient);

// bias_gradient = the sum of y_gradient per channel.
void bias_backward(const ImageShape& shape, const float* y_gradient, Write write,
                   float* bias_gradient);

// For rows of `columns` values: x_gradient as above. Without blocks; for dense layers.
void relu_backward(int64_t count, const float* y, const float* y_gradient, float* x_gradient);

}  // namespace renkei::compute
