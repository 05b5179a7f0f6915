// AlexNet in its one-tower form (Krizhevsky 2014, arXiv:1404.5997).
#include "networks/image_network.h"

namespace renkei::networks {
namespace {

// Modules are numbered in the order of their work, those without parameters too.
ValueId features(Builder& builder, ValueId x) {
  const auto part = builder.scope("features");
  int number = 0;
  const auto next = [&] { return std::to_string(number++); };
  const auto conv_relu = [&](int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
    x = conv2d(builder, x, next(),
               {.out = out, .kernel = kernel, .stride = stride, .padding = padding});
    x = builder.relu_(x, next());
  };
  const auto pool = [&] { x = builder.max_pool2d(x, {.kernel = 3, .stride = 2}, next()); };
  conv_relu(64, 11, 4, 2);
  pool();
  conv_relu(192, 5, 1, 2);
  pool();
  conv_relu(384, 3, 1, 1);
  conv_relu(256, 3, 1, 1);
  conv_relu(256, 3, 1, 1);
  pool();
  return x;
}

ImageOutputs alexnet(Builder& builder, ValueId images, const ImageOptions& options) {
  const double dropout = options.dropout.value_or(0.5);
  ValueId x = builder.adaptive_avg_pool2d(features(builder, images), 6, "avgpool");
  x = builder.flatten(x, 1);
  const auto part = builder.scope("classifier");
  x = linear(builder, builder.dropout(x, dropout, "0"), "1", {.out = 4096});
  x = builder.relu_(x, "2");
  x = linear(builder, builder.dropout(x, dropout, "3"), "4", {.out = 4096});
  x = builder.relu_(x, "5");
  return {linear(builder, x, "6", {.out = options.classes})};
}

}  // namespace

std::vector<NetworkDescription> alexnet_networks() {
  return {describe_image_network("alexnet", "AlexNet, one tower: 5 convolutions, 3 dense layers",
                                 {.least_image_size = 63}, alexnet)};
}

}  // namespace renkei::networks
