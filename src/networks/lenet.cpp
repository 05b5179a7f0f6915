// LeNet-5's shape (LeCun et al. 1998) with today's parts: two convolutions with ReLU and max
// pooling, three dense layers, for 3 × 32 × 32 images.
#include "networks/image_network.h"

namespace renkei::networks {
namespace {

ImageOutputs lenet(Builder& builder, ValueId images, const ImageOptions& options) {
  const Builder::Window pool{.kernel = 2, .stride = 2};
  ValueId x = conv2d(builder, images, "conv1", {.out = 16, .kernel = 5});
  x = builder.max_pool2d(builder.relu(x), pool);
  x = conv2d(builder, x, "conv2", {.out = 32, .kernel = 5});
  x = builder.max_pool2d(builder.relu(x), pool);
  x = builder.relu(linear(builder, builder.flatten(x, 1), "fc1", {.out = 120}));
  x = builder.relu(linear(builder, x, "fc2", {.out = 84}));
  return {linear(builder, x, "fc3", {.out = options.classes})};
}

}  // namespace

std::vector<NetworkDescription> lenet_networks() {
  return {describe_image_network(
      "lenet", "small convolutional network for 32 × 32 colour images",
      {.classes = 10, .image_size = 32, .least_image_size = 32, .largest_image_size = 32}, lenet)};
}

}  // namespace renkei::networks
