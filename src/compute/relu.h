#pragma once

#include "compute/blocked.h"
#include "compute/convolution.h"

namespace renkei::compute {

// The way back through y = ReLU(x + bias) for an image in blocked layout:
// x_gradient = y_gradient where y > 0, else 0; bias_gradient = its sum per channel.
void bias_relu_backward(const ImageShape& shape, const float* y, const float* y_gradient,
                        float* x_gradient, Write write, float* bias_gradient);

// bias_gradient = the sum of y_gradient per channel.
void bias_backward(const ImageShape& shape, const float* y_gradient, Write write,
                   float* bias_gradient);

// For rows of `columns` values: x_gradient as above. Without blocks; for dense layers.
void relu_backward(int64_t count, const float* y, const float* y_gradient, float* x_gradient);

}  // namespace renkei::compute
