#pragma once

#include "model/network.h"

namespace renkei::model {

// The network of the RaNNC tutorial: `layers` linear layers of width `hidden`, ReLU between them.
// 512 and 10 give 10 × (512² + 512) = 2,626,560 parameters.
class Mlp : public Network {
 public:
  Mlp(int64_t hidden, int64_t layers);

  torch::Tensor forward(torch::Tensor input) override;
  std::vector<int64_t> input_shape() const override { return {hidden_}; }
  int64_t outputs() const override { return hidden_; }
  RandomSample random_sample() const override {
    return {.target = RandomTarget::numbers, .target_size = hidden_};
  }

 private:
  int64_t hidden_;
  std::vector<torch::nn::Linear> layers_;
};

std::vector<NetworkDescription> mlp_networks();

}  // namespace renkei::model
