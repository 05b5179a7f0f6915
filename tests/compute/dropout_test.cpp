#include "compute/dropout.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

// The definition in the header: what a value is multiplied with.
float factor(const Dropout& dropout, size_t i) {
  const uint64_t counter = i / 64 * 16 + i % 16;
  const PhiloxBlock bits = philox(
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}, dropout.key);
  const bool kept = static_cast<double>(bits[i / 16 % 4] >> 8) >= dropout.probability * 0x1.0p24;
  return kept ? static_cast<float>(1 / (1 - dropout.probability)) : 0;
}

TEST(Dropout, EqualsItsDefinition) {
  for (const double p : {0.0, 0.1, 0.5})
    for (const int64_t count : {1, 15, 64, 65, 1000}) {
      const Dropout rule{.key = 0x123456789abcdefull + static_cast<uint64_t>(count),
                         .probability = p};
      const std::vector<float> x = random_values(count, 1);
      std::vector<float> y(x.size());
      dropout(rule, count, x.data(), y.data());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * factor(rule, i)) << i;
    }
}

TEST(Dropout, DropsAsManyAsAskedAndKeepsTheMean) {
  std::vector<float> y(200'000, 1.0f);
  dropout({.key = 5, .probability = 0.3}, std::ssize(y), y.data(), y.data());
  double sum = 0;
  for (const float value : y) sum += static_cast<double>(value);
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 0.0f)), 60'000, 1000);
  EXPECT_NEAR(sum, 200'000, 1500);
}

TEST(Dropout, OfEverythingLeavesNothingAndOtherKeysDropOthers) {
  std::vector<float> x(100, 1.0f), y(100), other(100);
  dropout({.key = 5, .probability = 1}, 100, x.data(), y.data());
  EXPECT_EQ(y, std::vector<float>(100, 0.0f));
  dropout({.key = 5, .probability = 0.5}, 100, x.data(), y.data());
  dropout({.key = 6, .probability = 0.5}, 100, x.data(), other.data());
  EXPECT_NE(y, other);
}

TEST(Dropout, WithBiasAndResidualEqualsItsDefinition) {
  for (const RowShape shape : {RowShape{4, 3}, RowShape{9, 7}, RowShape{50, 48}}) {
    const Dropout rule{.key = 77, .probability = 0.25};
    const std::vector<float> x = random_values(shape.count(), 1),
                             bias = random_values(shape.columns, 2),
                             residual = random_values(shape.count(), 3),
                             gradient = random_values(shape.count(), 4, 0.5f);
    std::vector<double> expected, expected_gradient, expected_bias(bias.size(), 0.5);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto f = static_cast<double>(factor(rule, i));
      expected.push_back(static_cast<double>(residual[i]) +
                         f * static_cast<double>(x[i] + bias[i % bias.size()]));
      expected_gradient.push_back(f * static_cast<double>(gradient[i]));
      expected_bias[i % bias.size()] += expected_gradient.back();
    }
    std::vector<float> y(x.size()), x_gradient(x.size()), bias_gradient(bias.size(), 0.5f);
    bias_dropout_add(rule, shape, x.data(), bias.data(), residual.data(), y.data());
    EXPECT_LT(relative_error(y, expected), 1e-6);
    bias_dropout_add_backward(rule, shape, gradient.data(), x_gradient.data(), Write::add,
                              bias_gradient.data());
    EXPECT_LT(relative_error(x_gradient, expected_gradient), 1e-6);
    EXPECT_LT(relative_error(bias_gradient, expected_bias), 5e-6);
  }
}

}  // namespace
}  // namespace renkei::compute
