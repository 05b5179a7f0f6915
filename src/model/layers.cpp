#include "model/layers.h"

namespace renkei::model::layers {

Tensor conv(const Tensor& input, torch::nn::Conv2d& conv) {
  return conv->forward(input);
}

Tensor conv_relu(const Tensor& input, torch::nn::Conv2d& conv) {
  return torch::relu(conv->forward(input));
}

Tensor conv_bn(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn) {
  return bn->forward(conv->forward(input));
}

Tensor conv_bn_relu(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn) {
  return torch::relu(bn->forward(conv->forward(input)));
}

Tensor conv_bn_add_relu(const Tensor& input, torch::nn::Conv2d& conv, torch::nn::BatchNorm2d& bn,
                        const Tensor& residual) {
  return torch::relu(bn->forward(conv->forward(input)) + residual);
}

Tensor max_pool(const Tensor& input, const Window& window) {
  return torch::max_pool2d(input, window.kernel, window.stride, window.padding, /*dilation=*/1,
                           window.ceil);
}

Tensor avg_pool(const Tensor& input, const Window& window) {
  return torch::avg_pool2d(input, window.kernel, window.stride, window.padding, window.ceil);
}

Tensor adaptive_avg_pool(const Tensor& input, int64_t size) {
  return torch::adaptive_avg_pool2d(input, {size, size});
}

Tensor global_avg_pool(const Tensor& input) {
  return input.mean({2, 3});
}

Tensor concat(const std::vector<Tensor>& inputs) {
  return torch::cat(inputs, 1);
}

Tensor flatten(const Tensor& input) {
  return input.flatten(1);
}

Tensor linear_relu(const Tensor& input, torch::nn::Linear& linear) {
  return torch::relu(linear->forward(input));
}

}  // namespace renkei::model::layers
