#include "model/alexnet.h"

#include "model/layers.h"

namespace renkei::model {

AlexNet::AlexNet(const ImageOptions& options)
    : ImageNetwork(options), dropout_(options.dropout.value_or(0.5)) {
  auto features = register_module("features", std::make_shared<torch::nn::Module>());
  const auto conv = [&](const char* name, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                        int64_t padding) {
    convs_.push_back(features->register_module(
        name, torch::nn::Conv2d(
                  torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding))));
  };
  conv("0", 3, 64, 11, 4, 2);
  conv("3", 64, 192, 5, 1, 2);
  conv("6", 192, 384, 3, 1, 1);
  conv("8", 384, 256, 3, 1, 1);
  conv("10", 256, 256, 3, 1, 1);
  auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
  const auto linear = [&](const char* name, int64_t in, int64_t out) {
    linears_.push_back(classifier->register_module(name, torch::nn::Linear(in, out)));
  };
  linear("1", 256 * 6 * 6, 4096);
  linear("4", 4096, 4096);
  linear("6", 4096, options.classes);
}

torch::Tensor AlexNet::forward(torch::Tensor input) {
  for (size_t i = 0; i < convs_.size(); ++i) {
    input = layers::conv_relu(input, convs_[i]);
    if (i == 0 || i == 1 || i == 4) input = layers::max_pool(input, {.kernel = 3, .stride = 2});
  }
  input = layers::flatten(layers::adaptive_avg_pool(input, 6));
  input = layers::linear_relu(torch::dropout(input, dropout_, is_training()), linears_[0]);
  input = layers::linear_relu(torch::dropout(input, dropout_, is_training()), linears_[1]);
  return layers::linear(input, linears_[2]);
}

std::vector<NetworkDescription> alexnet_networks() {
  return {describe_image_network(
      "alexnet", "AlexNet, one tower: 5 convolutions, 3 dense layers", {.least_image_size = 63},
      [](const ImageOptions& options) { return std::make_shared<AlexNet>(options); })};
}

}  // namespace renkei::model
