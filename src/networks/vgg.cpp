// VGG (Simonyan and Zisserman 2014, arXiv:1409.1556): 3 × 3 convolutions in five groups, each
// followed by pooling, then three dense layers. It has 11, 13, 16 or 19 layers.
#include <fmt/format.h>

#include <array>

#include "networks/image_network.h"

namespace renkei::networks {
namespace {

constexpr std::array<int64_t, 5> kChannels{64, 128, 256, 512, 512};  // of the five groups

std::array<int, 5> convolutions_per_group(int layers) {
  switch (layers) {
    case 11:
      return {1, 1, 2, 2, 2};
    case 13:
      return {2, 2, 2, 2, 2};
    case 16:
      return {2, 2, 3, 3, 3};
    default:
      return {2, 2, 4, 4, 4};  // 19
  }
}

ValueId vgg_features(Builder& builder, ValueId x, int layers, bool normalised) {
  const auto part = builder.scope("features");
  int number = 0;  // ReLU and pooling have a number in the names too
  const auto next = [&] { return std::to_string(number++); };
  const auto counts = convolutions_per_group(layers);
  for (size_t group = 0; group < counts.size(); ++group) {
    for (int i = 0; i < counts[group]; ++i) {
      x = conv2d(
          builder, x, next(),
          {.out = kChannels[group], .kernel = 3, .padding = 1, .beginning = {.start = Start::he}});
      if (normalised) x = batch_norm(builder, x, next());
      x = builder.relu_(x, next());
    }
    x = builder.max_pool2d(x, {.kernel = 2, .stride = 2}, next());
  }
  return x;
}

ValueId vgg_classifier(Builder& builder, ValueId x, const ImageOptions& options) {
  const auto part = builder.scope("classifier");
  const double dropout = options.dropout.value_or(0.5);
  const Beginning beginning{.start = Start::normal, .deviation = 0.01};
  for (const int first : {0, 3}) {
    x = linear(builder, x, std::to_string(first), {.out = 4096, .beginning = beginning});
    x = builder.relu_(x, std::to_string(first + 1));
    x = builder.dropout(x, dropout, std::to_string(first + 2));
  }
  return linear(builder, x, "6", {.out = options.classes, .beginning = beginning});
}

ImageLayers vgg(int layers, bool normalised) {
  return [=](Builder& builder, ValueId images, const ImageOptions& options) -> ImageOutputs {
    ValueId x = vgg_features(builder, images, layers, normalised);
    x = builder.flatten(builder.adaptive_avg_pool2d(x, 7, "avgpool"), 1);
    return {vgg_classifier(builder, x, options)};
  };
}

}  // namespace

std::vector<NetworkDescription> vgg_networks() {
  std::vector<NetworkDescription> list;
  for (const bool normalised : {false, true})
    for (const int layers : {11, 13, 16, 19})
      list.push_back(
          describe_image_network(fmt::format("vgg{}{}", layers, normalised ? "_bn" : ""),
                                 fmt::format("VGG, {} convolutions, 3 dense layers{}", layers - 3,
                                             normalised ? ", batch normalisation" : ""),
                                 {.least_image_size = 32}, vgg(layers, normalised)));
  return list;
}

}  // namespace renkei::networks
