#include "compute/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

constexpr double kEpsilon = 1e-5;

struct Reference {
  std::vector<double> y, x_gradient, gamma_gradient, beta_gradient;
};

// The definition, in double precision.
Reference reference(const RowShape& s, const std::vector<float>& x, const std::vector<float>& gamma,
                    const std::vector<float>& beta, const std::vector<float>& gradient) {
  Reference r{std::vector<double>(x.size()), std::vector<double>(x.size()),
              std::vector<double>(gamma.size()), std::vector<double>(gamma.size())};
  const auto columns = static_cast<size_t>(s.columns);
  const auto n = static_cast<double>(columns);
  for (size_t first = 0; first < x.size(); first += columns) {
    double mean = 0, variance = 0, mean_h = 0, mean_product = 0;
    for (size_t c = 0; c < columns; ++c) mean += static_cast<double>(x[first + c]) / n;
    for (size_t c = 0; c < columns; ++c)
      variance += std::pow(static_cast<double>(x[first + c]) - mean, 2) / n;
    const double deviation = std::sqrt(variance + kEpsilon);
    const auto xhat = [&](size_t c) {
      return (static_cast<double>(x[first + c]) - mean) / deviation;
    };
    const auto g = [&](size_t c) { return static_cast<double>(gradient[first + c]); };
    const auto h = [&](size_t c) { return g(c) * static_cast<double>(gamma[c]); };
    for (size_t c = 0; c < columns; ++c) {
      r.y[first + c] = xhat(c) * static_cast<double>(gamma[c]) + static_cast<double>(beta[c]);
      r.gamma_gradient[c] += g(c) * xhat(c);
      r.beta_gradient[c] += g(c);
      mean_h += h(c) / n;
      mean_product += h(c) * xhat(c) / n;
    }
    for (size_t c = 0; c < columns; ++c)
      r.x_gradient[first + c] = (h(c) - mean_h - xhat(c) * mean_product) / deviation;
  }
  return r;
}

class LayerNorm : public testing::TestWithParam<RowShape> {
 protected:
  RowShape shape = GetParam();
  // A mean that is large beside the deviation: where a careless variance cancels.
  std::vector<float> x = random_values(shape.count(), 1, 30);
  std::vector<float> gamma = random_values(shape.columns, 2, 1);
  std::vector<float> beta = random_values(shape.columns, 3);
  std::vector<float> gradient = random_values(shape.count(), 4);
  std::vector<float> y = x, mean = std::vector<float>(static_cast<size_t>(shape.rows)),
                     inverse = mean, x_gradient = x, gamma_gradient = gamma, beta_gradient = beta;
};

TEST_P(LayerNorm, EqualsItsDefinitionForwardAndBackward) {
  const Reference expected = reference(shape, x, gamma, beta, gradient);
  layer_norm_forward(shape, x.data(), gamma.data(), beta.data(), static_cast<float>(kEpsilon),
                     y.data(), mean.data(), inverse.data());
  EXPECT_LT(relative_error(y, expected.y), 5e-6);
  const LayerNormBackward work{shape,        x.data(),        mean.data(),      inverse.data(),
                               gamma.data(), gradient.data(), x_gradient.data()};
  layer_norm_backward(work, Write::replace, gamma_gradient.data(), Write::replace,
                      beta_gradient.data());
  EXPECT_LT(relative_error(x_gradient, expected.x_gradient), 2e-5);
  EXPECT_LT(relative_error(gamma_gradient, expected.gamma_gradient), 1e-5);
  EXPECT_LT(relative_error(beta_gradient, expected.beta_gradient), 1e-5);
  layer_norm_backward(work, Write::add, gamma_gradient.data(), Write::add, beta_gradient.data());
  for (auto* gradients : {&gamma_gradient, &beta_gradient})
    for (float& value : *gradients) value /= 2;
  EXPECT_LT(relative_error(gamma_gradient, expected.gamma_gradient), 1e-5);
  EXPECT_LT(relative_error(beta_gradient, expected.beta_gradient), 1e-5);
}

TEST_P(LayerNorm, WithoutParametersHasFactorsOfOne) {
  std::fill(gamma.begin(), gamma.end(), 1.0f);
  std::fill(beta.begin(), beta.end(), 0.0f);
  const Reference expected = reference(shape, x, gamma, beta, gradient);
  layer_norm_forward(shape, x.data(), nullptr, nullptr, static_cast<float>(kEpsilon), y.data(),
                     mean.data(), inverse.data());
  EXPECT_LT(relative_error(y, expected.y), 5e-6);
  layer_norm_backward(
      {shape, x.data(), mean.data(), inverse.data(), nullptr, gradient.data(), x_gradient.data()},
      Write::replace, nullptr, Write::replace, nullptr);
  EXPECT_LT(relative_error(x_gradient, expected.x_gradient), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNorm,
                         testing::Values(RowShape{1, 5}, RowShape{3, 16}, RowShape{40, 37},
                                         RowShape{17, 768}, RowShape{5, 1000}));

}  // namespace
}  // namespace renkei::compute
