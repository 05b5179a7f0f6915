#include "run/loss.h"

#include <gtest/gtest.h>

namespace renkei::run {
namespace {

using model::Objective;

TEST(Loss, OfPositionsIsTheMeanOverThosePredicted) {
  torch::manual_seed(1);
  const torch::Tensor scores = torch::randn({2, 5, 3});  // samples × classes × positions
  const torch::Tensor target = torch::tensor({{1.f, -100.f, 2.f}, {0.f, 4.f, 3.f}});
  const torch::Tensor logarithms = torch::log_softmax(scores, 1);
  const auto at = [&](int sample, int label, int position) {
    return -logarithms[sample][label][position].item<double>();
  };
  const double expected =
      (at(0, 1, 0) + at(0, 2, 2)) / 2 + (at(1, 0, 0) + at(1, 4, 1) + at(1, 3, 2)) / 3;
  EXPECT_NEAR(summed_loss(Objective::classification, scores, target).item<double>(), expected,
              1e-5);
}

TEST(Loss, OfPixelsTakesTheTargetAsARow) {
  torch::manual_seed(1);
  const torch::Tensor scores = torch::randn({2, 5, 3, 4});
  const torch::Tensor labels = torch::randint(0, 5, {2, 3, 4}, torch::kInt64);
  const double mean = torch::nn::functional::cross_entropy(scores, labels).item<double>();
  EXPECT_NEAR(summed_loss(Objective::classification, scores, labels.flatten(1).to(torch::kFloat32))
                  .item<double>(),
              2 * mean, 1e-5);
}

TEST(Loss, WithSmoothedLabelsIsTorchs) {
  torch::manual_seed(1);
  const torch::Tensor scores = torch::randn({4, 5}), labels = torch::tensor({0, 4, 2, 2});
  const auto options = torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1);
  EXPECT_NEAR(summed_loss(Objective::smoothed_classification, scores, labels).item<double>() / 4,
              torch::nn::functional::cross_entropy(scores, labels, options).item<double>(), 1e-6);
}

}  // namespace
}  // namespace renkei::run
