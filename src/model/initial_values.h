// Initial values of parameters, drawn as torchvision draws them: with the same seed a network
// starts from the same numbers in both.
#pragma once

#include <torch/torch.h>

namespace renkei::model {

// He's normal distribution, scaled to the outgoing connections, for every convolution of the
// module; their biases start at zero.
void start_convolutions_from_he(torch::nn::Module& module);

// Normal with the given deviation, cut off at ±2 (not at 2 deviations).
void start_from_truncated_normal(torch::Tensor tensor, double deviation);

}  // namespace renkei::model
