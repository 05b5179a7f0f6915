#include "model/lenet.h"

#include "model/layers.h"

namespace renkei::model {

LeNet::LeNet(int64_t classes)
    : ImageNetwork({.classes = classes, .image_size = 32}),
      conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 5)))),
      conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 5)))),
      fc1_(register_module("fc1", torch::nn::Linear(32 * 5 * 5, 120))),
      fc2_(register_module("fc2", torch::nn::Linear(120, 84))),
      fc3_(register_module("fc3", torch::nn::Linear(84, classes))) {}

torch::Tensor LeNet::forward(torch::Tensor input) {
  input = layers::max_pool(layers::conv_relu(input, conv1_), {.kernel = 2, .stride = 2});
  input = layers::max_pool(layers::conv_relu(input, conv2_), {.kernel = 2, .stride = 2});
  input = layers::linear_relu(layers::flatten(input), fc1_);
  return layers::linear(layers::linear_relu(input, fc2_), fc3_);
}

std::vector<NetworkDescription> lenet_networks() {
  return {describe_image_network(
      "lenet", "small convolutional network for 32 × 32 colour images",
      {.classes = 10, .image_size = 32, .least_image_size = 32, .largest_image_size = 32},
      [](const ImageOptions& options) { return std::make_shared<LeNet>(options.classes); })};
}

}  // namespace renkei::model
