#include "compute/cross_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

TEST(CrossEntropy, EqualsItsDefinitionForwardAndBackward) {
  for (const RowShape shape : {RowShape{1, 1}, RowShape{4, 10}, RowShape{3, 5003}}) {
    const std::vector<float> logits = random_values(shape.count(), 1, 5);
    std::vector<int64_t> targets;
    for (int64_t row = 0; row < shape.rows; ++row) targets.push_back(row * 7 % shape.columns);
    const std::vector<float> factors = random_values(shape.rows, 2, 2);
    std::vector<double> loss, gradient;
    for (size_t row = 0; row < targets.size(); ++row) {
      const float* x = logits.data() + static_cast<int64_t>(row) * shape.columns;
      double sum = 0;
      for (int64_t c = 0; c < shape.columns; ++c) sum += std::exp(static_cast<double>(x[c]));
      loss.push_back(std::log(sum) - static_cast<double>(x[targets[row]]));
      for (int64_t c = 0; c < shape.columns; ++c)
        gradient.push_back(static_cast<double>(factors[row]) *
                           (std::exp(static_cast<double>(x[c])) / sum - (c == targets[row])));
    }
    std::vector<float> ours(loss.size()), log_sum(loss.size()), in_place = logits;
    cross_entropy_forward(shape, logits.data(), targets.data(), ours.data(), log_sum.data());
    for (size_t row = 0; row < loss.size(); ++row) EXPECT_NEAR(ours[row], loss[row], 2e-6);
    cross_entropy_backward(shape, in_place.data(), targets.data(), log_sum.data(), factors.data(),
                           in_place.data());
    for (size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(in_place[i], gradient[i], 3e-6);
  }
}

TEST(CrossEntropy, OfLargeAndOfMaskedLogitsIsExact) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  std::vector<float> logits(5000, kMasked);  // more than a piece that is read at once
  logits[1] = 1000;
  logits[4999] = 1000;
  const int64_t target = 4999;
  const float factor = 1;
  float loss, log_sum;
  cross_entropy_forward({1, 5000}, logits.data(), &target, &loss, &log_sum);
  EXPECT_NEAR(loss, std::log(2.0), 1e-4);
  cross_entropy_backward({1, 5000}, logits.data(), &target, &log_sum, &factor, logits.data());
  EXPECT_EQ(logits[0], 0);
  EXPECT_NEAR(logits[1], 0.5, 1e-4);
  EXPECT_NEAR(logits[4999], -0.5, 1e-4);
}

TEST(CrossEntropy, IgnoresRowsAndKeepsWhatIsNotANumber) {
  const std::vector<float> logits = {1, 2, 3, 1, NAN, 3};
  const std::vector<int64_t> targets = {kIgnoredTarget, 2};
  const std::vector<float> factors = {1, 1};
  std::vector<float> loss(2), log_sum(2), gradient(6, 7.0f);
  cross_entropy_forward({2, 3}, logits.data(), targets.data(), loss.data(), log_sum.data());
  cross_entropy_backward({2, 3}, logits.data(), targets.data(), log_sum.data(), factors.data(),
                         gradient.data());
  EXPECT_EQ(loss[0], 0);
  EXPECT_TRUE(std::isnan(loss[1]));
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(i < 3 ? gradient[i] == 0 : std::isnan(gradient[i]));
}

TEST(CrossEntropy, RefusesTargetsThatAreNoColumn) {
  const std::vector<float> logits = {1, 2, 3};
  float loss, log_sum;
  for (const int64_t target : {-1, 3}) {
    try {
      cross_entropy_forward({1, 3}, logits.data(), &target, &loss, &log_sum);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.message, testing::HasSubstr("of row 0 is not one of the 3 classes"));
    }
  }
}

}  // namespace
}  // namespace renkei::compute
