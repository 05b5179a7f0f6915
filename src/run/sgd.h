#pragma once

#include <torch/torch.h>

namespace renkei::run {

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double weight_decay = 0;
};

// Stochastic gradient descent with momentum, as torch.optim.SGD defines it:
//
//   g ← g + weight_decay θ      v ← momentum v + g      θ ← θ - learning_rate v
//
// on flat buffers. In the first step v is g itself.
class Sgd {
 public:
  explicit Sgd(SgdOptions options) : options_(options) {}

  // Uses the gradients up: they hold no meaning afterwards.
  void update(torch::Tensor& values, torch::Tensor& gradients);

 private:
  SgdOptions options_;
  torch::Tensor velocity_;
};

}  // namespace renkei::run
