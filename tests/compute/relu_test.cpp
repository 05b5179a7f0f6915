#include "compute/relu.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

class BiasRelu : public testing::TestWithParam<int64_t> {};

TEST_P(BiasRelu, BackwardMasksAndSums) {
  const ImageShape shape{2, 16, 3, 5, GetParam()};
  const std::vector<float> y = random_values(shape.count(), 1),
                           gradient = random_values(shape.count(), 2);
  std::vector<double> expected(y.size()), expected_bias(16);
  for (size_t i = 0; i < y.size(); ++i) {
    expected[i] = y[i] > 0 ? static_cast<double>(gradient[i]) : 0;
    expected_bias[i / 15 % 16] += expected[i];
  }
  std::vector<float> masked(y.size()), bias(16, 0.5f);
  bias_relu_backward(shape, to_blocked(shape, y).data(), to_blocked(shape, gradient).data(),
                     masked.data(), Write::add, bias.data());
  for (double& value : expected_bias) value += 0.5;
  EXPECT_EQ(relative_error(to_plain(shape, masked), expected), 0);
  EXPECT_LT(relative_error(bias, expected_bias), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Blocks, BiasRelu, testing::Values(8, 16));

TEST(Relu, CutsNegativesAndMasksTheirGradient) {
  for (const int64_t count : {1, 15, 16, 17, 40'000}) {
    const std::vector<float> x = random_values(count, 1, 0.1f), g = random_values(count, 2, 0.1f);
    std::vector<float> y = x, x_gradient(x.size());
    relu_in_place(count, y.data());
    relu_backward(count, y.data(), g.data(), x_gradient.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], x[i] > 0 ? x[i] : 0);
      ASSERT_EQ(x_gradient[i], x[i] > 0 ? g[i] : 0);
    }
  }
}

TEST(Relu, KeepsWhatIsNotANumberAndPassesItsGradient) {
  for (const int64_t count : {3, 20}) {
    std::vector<float> y(static_cast<size_t>(count), NAN), x_gradient(y.size());
    relu_in_place(count, y.data());
    for (const float value : y) EXPECT_TRUE(std::isnan(value));
    relu_backward(count, y.data(), std::vector<float>(y.size(), 2).data(), x_gradient.data());
    EXPECT_EQ(x_gradient, std::vector<float>(y.size(), 2));
  }
}

}  // namespace
}  // namespace renkei::compute
