#include "model/mlp.h"

#include "model/layers.h"

namespace renkei::model {

Mlp::Mlp(int64_t hidden, int64_t layers) : hidden_(hidden) {
  for (int64_t i = 0; i < layers; ++i)
    layers_.push_back(
        register_module("layer" + std::to_string(i), torch::nn::Linear(hidden, hidden)));
}

torch::Tensor Mlp::forward(torch::Tensor input) {
  for (size_t i = 0; i + 1 < layers_.size(); ++i) input = layers::linear_relu(input, layers_[i]);
  return layers::linear(input, layers_.back());
}

std::vector<NetworkDescription> mlp_networks() {
  return {{.name = "mlp",
           .summary = "layers × (linear + ReLU), all of width hidden",
           .make = [](const Settings& settings) {
             return std::make_shared<Mlp>(
                 settings.integer_unless_auto("model.hidden").value_or(512),
                 settings.integer_unless_auto("model.layers").value_or(10));
           }}};
}

}  // namespace renkei::model
