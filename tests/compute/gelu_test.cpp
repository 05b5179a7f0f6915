#include "compute/gelu.h"

#include <gtest/gtest.h>

#include <numbers>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

double phi(Gelu kind, double v) {
  if (kind == Gelu::erf) return 0.5 * std::erfc(-v / std::numbers::sqrt2);
  return 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
}

double gelu(Gelu kind, double v) {
  return v * phi(kind, v);
}

double slope(Gelu kind, double v) {
  return (gelu(kind, v + 1e-5) - gelu(kind, v - 1e-5)) / 2e-5;
}

class Gelus : public testing::TestWithParam<Gelu> {};

TEST_P(Gelus, EqualTheirDefinitionForwardAndBackward) {
  for (const RowShape shape : {RowShape{1, 1}, RowShape{7, 50}, RowShape{33, 64}}) {
    const std::vector<float> x = random_values(shape.count(), 1, 0.2f),
                             bias = random_values(shape.columns, 2, 0.5f),
                             gradient = random_values(shape.count(), 3, 0.2f);
    std::vector<double> y, x_gradient, bias_gradient(bias.size(), 0.25);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]) + static_cast<double>(bias[i % bias.size()]);
      y.push_back(gelu(GetParam(), v));
      x_gradient.push_back(static_cast<double>(gradient[i]) * slope(GetParam(), v));
      bias_gradient[i % bias.size()] += x_gradient.back();
    }
    std::vector<float> ours(x.size()), our_x_gradient(x.size()), our_bias(bias.size(), 0.25f);
    gelu_forward(shape, GetParam(), x.data(), bias.data(), ours.data());
    EXPECT_LT(relative_error(ours, y), 1e-6);
    gelu_backward(shape, GetParam(), x.data(), bias.data(), gradient.data(), our_x_gradient.data(),
                  Write::add, our_bias.data());
    EXPECT_LT(relative_error(our_x_gradient, x_gradient), 2e-6);
    EXPECT_LT(relative_error(our_bias, bias_gradient), 5e-6);
  }
}

TEST_P(Gelus, AreRightFarFromZeroToo) {
  const std::vector<float> x = {-200, -20, -9, -5, -3, -0.5f, -1e-6f, 0, 1e-6f, 3, 9, 20, 200, NAN};
  const RowShape shape{1, std::ssize(x)};
  std::vector<float> y(x.size()), gradient(x.size(), 1.0f);
  gelu_forward(shape, GetParam(), x.data(), nullptr, y.data());
  gelu_backward(shape, GetParam(), x.data(), nullptr, gradient.data(), gradient.data(),
                Write::replace, nullptr);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const auto v = static_cast<double>(x[i]);
    EXPECT_NEAR(y[i], gelu(GetParam(), v), 5e-7 * (1 + std::abs(v))) << v;
    EXPECT_NEAR(gradient[i], slope(GetParam(), v), 2e-6) << v;
  }
  EXPECT_TRUE(std::isnan(y.back()) && std::isnan(gradient.back()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Gelus, testing::Values(Gelu::erf, Gelu::tanh));

}  // namespace
}  // namespace renkei::compute
