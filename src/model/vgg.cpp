#include "model/vgg.h"

#include <fmt/format.h>

#include <array>

#include "model/initial_values.h"
#include "model/layers.h"

namespace renkei::model {
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

}  // namespace

Vgg::Vgg(int layers, bool batch_norm, const ImageOptions& options)
    : ImageNetwork(options), dropout_(options.dropout.value_or(0.5)) {
  auto features = register_module("features", std::make_shared<torch::nn::Module>());
  int index = 0;  // ReLU and pooling have a number in the names too
  int64_t in = 3;
  const auto counts = convolutions_per_group(layers);
  for (size_t group = 0; group < counts.size(); ++group) {
    const int64_t out = kChannels[group];
    for (int i = 0; i < counts[group]; ++i, in = out) {
      Unit unit;
      unit.conv = features->register_module(
          std::to_string(index++),
          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)));
      if (batch_norm)
        unit.bn = features->register_module(std::to_string(index++), torch::nn::BatchNorm2d(out));
      ++index;
      unit.ends_group = i + 1 == counts[group];
      units_.push_back(unit);
    }
    ++index;
  }
  auto classifier = register_module("classifier", std::make_shared<torch::nn::Module>());
  linears_ = {classifier->register_module("0", torch::nn::Linear(512 * 7 * 7, 4096)),
              classifier->register_module("3", torch::nn::Linear(4096, 4096)),
              classifier->register_module("6", torch::nn::Linear(4096, options.classes))};

  start_convolutions_from_he(*this);
  for (torch::nn::Linear& linear : linears_) {
    torch::nn::init::normal_(linear->weight, 0, 0.01);
    torch::nn::init::zeros_(linear->bias);
  }
}

torch::Tensor Vgg::forward(torch::Tensor input) {
  for (Unit& unit : units_) {
    input = unit.bn.is_empty() ? layers::conv_relu(input, unit.conv)
                               : layers::conv_bn_relu(input, unit.conv, unit.bn);
    if (unit.ends_group) input = layers::max_pool(input, {.kernel = 2, .stride = 2});
  }
  input = layers::flatten(layers::adaptive_avg_pool(input, 7));
  for (size_t i = 0; i < 2; ++i)
    input = torch::dropout(layers::linear_relu(input, linears_[i]), dropout_, is_training());
  return layers::linear(input, linears_[2]);
}

std::vector<NetworkDescription> vgg_networks() {
  std::vector<NetworkDescription> list;
  for (const bool batch_norm : {false, true})
    for (const int layers : {11, 13, 16, 19})
      list.push_back(describe_image_network(
          fmt::format("vgg{}{}", layers, batch_norm ? "_bn" : ""),
          fmt::format("VGG, {} convolutions, 3 dense layers{}", layers - 3,
                      batch_norm ? ", batch normalisation" : ""),
          {.least_image_size = 32}, [layers, batch_norm](const ImageOptions& options) {
            return std::make_shared<Vgg>(layers, batch_norm, options);
          }));
  return list;
}

}  // namespace renkei::model
