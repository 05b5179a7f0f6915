#include "model/resnet.h"

#include <fmt/format.h>

#include <array>

#include "model/initial_values.h"
#include "model/layers.h"

namespace renkei::model {
namespace {

std::array<int, 4> blocks_per_stage(int layers) {
  switch (layers) {
    case 18:
      return {2, 2, 2, 2};
    case 34:
    case 50:
      return {3, 4, 6, 3};
    case 101:
      return {3, 4, 23, 3};
    default:
      return {3, 8, 36, 3};  // 152
  }
}

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

}  // namespace

ResidualBlock::ResidualBlock(int64_t in, int64_t channels, int64_t stride, bool bottleneck) {
  const int64_t out = bottleneck ? 4 * channels : channels;
  const bool same_shape = stride == 1 && in == out;
  // Made first and registered last, as in torchvision, so that the same seed gives the same values.
  if (!same_shape) shortcut_conv_ = convolution(in, out, 1, stride);
  if (bottleneck) {
    add("1", in, channels, 1, 1);
    add("2", channels, channels, 3, stride);
    add("3", channels, out, 1, 1);
  } else {
    add("1", in, channels, 3, stride);
    add("2", channels, out, 3, 1);
  }
  if (same_shape) return;
  auto shortcut = register_module("downsample", std::make_shared<torch::nn::Module>());
  shortcut->register_module("0", shortcut_conv_);
  shortcut_bn_ = shortcut->register_module("1", torch::nn::BatchNorm2d(out));
}

void ResidualBlock::add(const std::string& number, int64_t in, int64_t out, int64_t kernel,
                        int64_t stride) {
  convs_.push_back(register_module("conv" + number, convolution(in, out, kernel, stride)));
  bns_.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
}

torch::Tensor ResidualBlock::forward(torch::Tensor input) {
  torch::Tensor output = input;
  for (size_t i = 0; i + 1 < convs_.size(); ++i)
    output = layers::conv_bn_relu(output, convs_[i], bns_[i]);
  const torch::Tensor shortcut =
      shortcut_conv_.is_empty() ? input : layers::conv_bn(input, shortcut_conv_, shortcut_bn_);
  return layers::conv_bn_add_relu(output, convs_.back(), bns_.back(), shortcut);
}

ResNet::ResNet(int layers, const ImageOptions& options) : ImageNetwork(options) {
  conv_ = register_module("conv1", convolution(3, 64, 7, 2));
  bn_ = register_module("bn1", torch::nn::BatchNorm2d(64));
  const bool bottleneck = layers >= 50;
  const auto counts = blocks_per_stage(layers);
  int64_t in = 64, channels = 64;
  for (size_t stage = 0; stage < counts.size(); ++stage, channels *= 2) {
    auto parent =
        register_module("layer" + std::to_string(stage + 1), std::make_shared<torch::nn::Module>());
    for (int i = 0; i < counts[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      blocks_.push_back(parent->register_module(
          std::to_string(i), std::make_shared<ResidualBlock>(in, channels, stride, bottleneck)));
      in = bottleneck ? 4 * channels : channels;
    }
  }
  linear_ = register_module("fc", torch::nn::Linear(in, options.classes));
  start_convolutions_from_he(*this);
}

torch::Tensor ResNet::forward(torch::Tensor input) {
  input = layers::conv_bn_relu(input, conv_, bn_);
  input = layers::max_pool(input, {.kernel = 3, .stride = 2, .padding = 1});
  for (const auto& block : blocks_) input = block->forward(input);
  return layers::linear(layers::global_avg_pool(input), linear_);
}

std::vector<NetworkDescription> resnet_networks() {
  std::vector<NetworkDescription> list;
  for (const int layers : {18, 34, 50, 101, 152})
    list.push_back(describe_image_network(
        fmt::format("resnet{}", layers),
        fmt::format("residual network, {} layers{}", layers, layers >= 50 ? ", bottlenecks" : ""),
        {}, [layers](const ImageOptions& options) {
          return std::make_shared<ResNet>(layers, options);
        }));
  return list;
}

}  // namespace renkei::model
