// ResNet (He et al. 2015, arXiv:1512.03385) with 18, 34, 50, 101 or 152 layers.
#include <fmt/format.h>

#include <array>

#include "networks/image_network.h"

namespace renkei::networks {
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

Convolution without_bias(int64_t out, int64_t kernel, int64_t stride) {
  return {.out = out,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .bias = false,
          .beginning = {.start = Start::he}};
}

struct Block {
  int64_t channels;
  int64_t stride;
  bool bottleneck;
};

// Two 3 × 3 convolutions, or (a bottleneck) 1 × 1, 3 × 3 and 1 × 1 with four times the channels,
// added to the input. A stride is taken by the 3 × 3 convolution.
ValueId residual_block(Builder& builder, ValueId input, const Block& block) {
  const int64_t out = block.bottleneck ? 4 * block.channels : block.channels;
  std::vector<Convolution> chain;
  if (block.bottleneck)
    chain = {without_bias(block.channels, 1, 1), without_bias(block.channels, 3, block.stride),
             without_bias(out, 1, 1)};
  else
    chain = {without_bias(block.channels, 3, block.stride), without_bias(out, 3, 1)};
  ValueId x = input;
  for (size_t i = 0; i < chain.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    x = batch_norm(builder, conv2d(builder, x, "conv" + number, chain[i]), "bn" + number);
    if (i + 1 < chain.size()) x = builder.relu_(x, "relu");
  }
  ValueId shortcut = input;
  if (block.stride != 1 || builder.size(input, 1) != out) {
    shortcut = conv2d(builder, input, "downsample.0", without_bias(out, 1, block.stride));
    shortcut = batch_norm(builder, shortcut, "downsample.1");
  }
  return builder.relu_(builder.add_(x, program::Reference{shortcut}), "relu");
}

ImageLayers resnet(int layers) {
  return [=](Builder& builder, ValueId images, const ImageOptions& options) -> ImageOutputs {
    ValueId x =
        batch_norm(builder, conv2d(builder, images, "conv1", without_bias(64, 7, 2)), "bn1");
    x = builder.relu_(x, "relu");
    x = builder.max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
    const auto counts = blocks_per_stage(layers);
    int64_t channels = 64;
    for (size_t stage = 0; stage < counts.size(); ++stage, channels *= 2)
      for (int i = 0; i < counts[stage]; ++i) {
        const auto scope = builder.scope(fmt::format("layer{}.{}", stage + 1, i));
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        x = residual_block(builder, x, {channels, stride, layers >= 50});
      }
    x = builder.flatten(builder.adaptive_avg_pool2d(x, 1, "avgpool"), 1);
    return {linear(builder, x, "fc", {.out = options.classes})};
  };
}

}  // namespace

std::vector<NetworkDescription> resnet_networks() {
  std::vector<NetworkDescription> list;
  for (const int layers : {18, 34, 50, 101, 152})
    list.push_back(describe_image_network(
        fmt::format("resnet{}", layers),
        fmt::format("residual network, {} layers{}", layers, layers >= 50 ? ", bottlenecks" : ""),
        {}, resnet(layers)));
  return list;
}

}  // namespace renkei::networks
