#include "model/layers.h"

#include "model/blocked_layers.h"

namespace renkei::model::layers {

using blocked::is_blocked;
using blocked::to_plain;

Tensor conv(const Tensor& input, torch::nn::Conv2d& conv) {
  if (blocked::takes(input, *conv)) return blocked::conv(input, *conv, false);
  return conv->forward(to_plain(input));
}

Tensor conv_relu(const Tensor& input, torch::nn::Conv2d& conv) {
  if (blocked::takes(input, *conv)) return blocked::conv(input, *conv, true);
  return torch::relu(conv->forward(to_plain(input)));
}

namespace {

Tensor batch_norm(const Tensor& input, torch::nn::BatchNorm2d& bn, const Tensor& residual,
                  bool relu) {
  if (blocked::takes(input, *bn) && (!residual.defined() || is_blocked(residual)))
    return blocked::batch_norm(input, *bn, residual, relu);
  Tensor output = bn->forward(to_plain(input));
  if (residual.defined()) output = output + to_plain(residual);
  return relu ? torch::relu(output) : output;
}

}  // namespace

Tensor conv_bn(const Tensor& input, torch::nn::Conv2d& convolution, torch::nn::BatchNorm2d& bn) {
  return batch_norm(conv(input, convolution), bn, {}, false);
}

Tensor conv_bn_relu(const Tensor& input, torch::nn::Conv2d& convolution,
                    torch::nn::BatchNorm2d& bn) {
  return batch_norm(conv(input, convolution), bn, {}, true);
}

Tensor conv_bn_add_relu(const Tensor& input, torch::nn::Conv2d& convolution,
                        torch::nn::BatchNorm2d& bn, const Tensor& residual) {
  return batch_norm(conv(input, convolution), bn, residual, true);
}

Tensor max_pool(const Tensor& input, const Window& window) {
  if (is_blocked(input) && !window.ceil)
    return blocked::pool(input, {window.kernel, window.stride, window.padding, true});
  return torch::max_pool2d(to_plain(input), window.kernel, window.stride, window.padding,
                           /*dilation=*/1, window.ceil);
}

Tensor avg_pool(const Tensor& input, const Window& window) {
  if (is_blocked(input) && !window.ceil)
    return blocked::pool(input, {window.kernel, window.stride, window.padding, false});
  return torch::avg_pool2d(to_plain(input), window.kernel, window.stride, window.padding,
                           window.ceil);
}

Tensor adaptive_avg_pool(const Tensor& input, int64_t size) {
  if (input.size(2) == size && input.size(3) == size) return input;
  return torch::adaptive_avg_pool2d(to_plain(input), {size, size});
}

Tensor global_avg_pool(const Tensor& input) {
  return input.mean({2, 3}).flatten(1);  // in both layouts
}

Tensor concat(const std::vector<Tensor>& inputs) {
  bool all_blocked = true;
  for (const Tensor& input : inputs) all_blocked &= is_blocked(input);
  if (all_blocked) return torch::cat(inputs, 1);
  std::vector<Tensor> plain;
  for (const Tensor& input : inputs) plain.push_back(to_plain(input));
  return torch::cat(plain, 1);
}

Tensor flatten(const Tensor& input) {
  return to_plain(input).flatten(1);
}

Tensor linear(const Tensor& input, torch::nn::Linear& linear) {
  if (blocked::takes(input, *linear)) return blocked::linear(input, *linear, false);
  return linear->forward(input);
}

Tensor linear_relu(const Tensor& input, torch::nn::Linear& linear) {
  if (blocked::takes(input, *linear)) return blocked::linear(input, *linear, true);
  return torch::relu(linear->forward(input));
}

}  // namespace renkei::model::layers
