// The layers that the convolutional networks are written with. Each is one call per fused unit
// (convolution + batch normalisation + addition + ReLU), so that a fast kernel can take its place;
// what a layer means is its plain Torch form in layers.cpp, which compute.blocked_layout=false
// brings back.
//
// The modules stay Torch's own, so parameters have the names, shapes and initial values that
// PyTorch gives them. Between layers an image tensor may be in a layout that only these functions
// understand: nothing but they may touch it, and flatten() or global_avg_pool() end it.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace renkei::model::layers {

using torch::Tensor;

struct Window {
  int64_t kernel;
  int64_t stride;
  int64_t padding = 0;
  bool ceil = false;  // a last, partial window counts
};

Tensor conv(const Tensor& input, torch::nn::Conv2d& conv);  // with its bias, if it has one
Tensor conv_relu(const Tensor& input, torch::nn::Conv2d& conv);
Tensor conv_bn(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn);
Tensor conv_bn_relu(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn);
// ReLU(bn(conv(input)) + residual): the end of a residual block.
Tensor conv_bn_add_relu(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn,
                        const Tensor& residual);

Tensor max_pool(const Tensor& input, const Window& window);
Tensor avg_pool(const Tensor& input, const Window& window);  // padding counts as zeros
Tensor adaptive_avg_pool(const Tensor& input, int64_t size);
Tensor global_avg_pool(const Tensor& input);       // N × C
Tensor concat(const std::vector<Tensor>& inputs);  // along the channels
Tensor flatten(const Tensor& input);               // N × (C H W)

Tensor linear(const Tensor& input, torch::nn::Linear& linear);
Tensor linear_relu(const Tensor& input, torch::nn::Linear& linear);

}  // namespace renkei::model::layers
