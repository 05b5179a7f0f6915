#include "run/sgd.h"

#include <gtest/gtest.h>

namespace renkei::run {
namespace {

// torch::optim::SGD is the reference.
TEST(Sgd, EqualsTorchAfterAHundredSteps) {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 1e-2}) {
      torch::manual_seed(1);
      torch::Tensor ours = torch::randn({101});
      torch::Tensor theirs = ours.clone().requires_grad_();
      torch::optim::SGD reference(
          {theirs}, torch::optim::SGDOptions(0.05).momentum(momentum).weight_decay(decay));
      Sgd sgd({.learning_rate = 0.05, .momentum = momentum, .weight_decay = decay});
      for (int step = 0; step < 100; ++step) {
        torch::Tensor gradient = torch::randn({101});
        theirs.mutable_grad() = gradient.clone();
        reference.step();
        sgd.update(ours, gradient);
      }
      const double scale = theirs.abs().max().item<double>();
      EXPECT_LT((ours - theirs).abs().max().item<double>() / scale, 1e-6)
          << "momentum " << momentum << ", weight decay " << decay;
    }
}

}  // namespace
}  // namespace renkei::run
