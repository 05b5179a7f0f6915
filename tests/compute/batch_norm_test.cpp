#include "compute/batch_norm.h"

#include <gtest/gtest.h>

#include "tests/compute/images.h"

namespace renkei::compute {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Case {
  bool residual, relu;
  int64_t block = 8;
};

// The definition, in double precision and plain layout.
struct Reference {
  std::vector<double> mean, variance, y, x_gradient, residual_gradient, gamma_gradient,
      beta_gradient;
};

class BatchNorm : public testing::TestWithParam<Case> {
 protected:
  ImageShape shape{3, 32, 19, 17, GetParam().block};
  // A mean that is large beside the deviation: where a careless variance cancels.
  std::vector<float> x = random_values(shape.count(), 1, 30);
  std::vector<float> residual = random_values(shape.count(), 2);
  std::vector<float> gradient = random_values(shape.count(), 3);
  std::vector<float> gamma = random_values(shape.channels, 4, 1);
  std::vector<float> beta = random_values(shape.channels, 5);

  Reference reference() const {
    const auto channels = static_cast<size_t>(shape.channels);
    const auto pixels = static_cast<size_t>(shape.pixels());
    const double values = static_cast<double>(shape.batch * shape.pixels());
    const auto channel = [&](size_t i) { return i / pixels % channels; };
    Reference r;
    for (auto* sums : {&r.mean, &r.variance, &r.gamma_gradient, &r.beta_gradient})
      sums->resize(channels);
    for (size_t i = 0; i < x.size(); ++i) r.mean[channel(i)] += static_cast<double>(x[i]) / values;
    for (size_t i = 0; i < x.size(); ++i)
      r.variance[channel(i)] +=
          std::pow(static_cast<double>(x[i]) - r.mean[channel(i)], 2) / values;
    std::vector<double> xhat(x.size()), g(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = channel(i);
      xhat[i] = (static_cast<double>(x[i]) - r.mean[c]) / std::sqrt(r.variance[c] + 1e-5);
      double y = xhat[i] * static_cast<double>(gamma[c]) + static_cast<double>(beta[c]);
      if (GetParam().residual) y += static_cast<double>(residual[i]);
      g[i] = !GetParam().relu || y > 0 ? static_cast<double>(gradient[i]) : 0;
      r.y.push_back(GetParam().relu ? std::max(0.0, y) : y);
      r.gamma_gradient[c] += g[i] * xhat[i];
      r.beta_gradient[c] += g[i];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = channel(i);
      r.x_gradient.push_back(
          static_cast<double>(gamma[c]) / std::sqrt(r.variance[c] + 1e-5) *
          (g[i] - r.beta_gradient[c] / values - xhat[i] * r.gamma_gradient[c] / values));
    }
    r.residual_gradient = g;
    return r;
  }
};

TEST_P(BatchNorm, EqualsItsDefinitionForwardAndBackward) {
  const Reference expected = reference();
  const std::vector<float> blocked_x = to_blocked(shape, x);
  const std::vector<float> blocked_residual = to_blocked(shape, residual);
  const std::vector<float> blocked_gradient = to_blocked(shape, gradient);
  std::vector<float> y(x.size());
  const BatchNormTail tail{.residual = GetParam().residual ? blocked_residual.data() : nullptr,
                           .relu = GetParam().relu};
  const ChannelStatistics statistics = batch_norm_forward(shape, blocked_x.data(), gamma.data(),
                                                          beta.data(), kEpsilon, tail, y.data());
  EXPECT_LT(relative_error(statistics.mean, expected.mean), 1e-7);
  EXPECT_LT(relative_error(statistics.variance, expected.variance), 5e-7);
  EXPECT_LT(relative_error(to_plain(shape, y), expected.y), 1e-6);

  std::vector<float> x_gradient(x.size()), residual_gradient(x.size());
  const BatchNormBackward work{
      .shape = shape,
      .x = blocked_x.data(),
      .y = y.data(),
      .statistics = statistics,
      .gamma = gamma.data(),
      .beta = beta.data(),
      .epsilon = kEpsilon,
      .relu = GetParam().relu,
      .y_gradient = blocked_gradient.data(),
      .x_gradient = x_gradient.data(),
      .residual_gradient = GetParam().residual ? residual_gradient.data() : nullptr};
  const BatchNormSums sums = batch_norm_backward(work);
  EXPECT_LT(relative_error(sums.g, expected.beta_gradient), 1e-6);
  EXPECT_LT(relative_error(sums.g_xhat, expected.gamma_gradient), 1e-6);
  EXPECT_LT(relative_error(to_plain(shape, x_gradient), expected.x_gradient), 1e-6);
  if (GetParam().residual) {
    EXPECT_LT(relative_error(to_plain(shape, residual_gradient), expected.residual_gradient), 1e-6);
  }
}

TEST_P(BatchNorm, InTwoStepsGivesTheSameBits) {
  const std::vector<float> blocked_x = to_blocked(shape, x);
  const std::vector<float> blocked_residual = to_blocked(shape, residual);
  const BatchNormTail tail{.residual = GetParam().residual ? blocked_residual.data() : nullptr,
                           .relu = GetParam().relu};
  std::vector<float> once(x.size()), twice(x.size());
  const ChannelStatistics statistics = batch_norm_forward(shape, blocked_x.data(), gamma.data(),
                                                          beta.data(), kEpsilon, tail, once.data());
  batch_norm_apply(shape, blocked_x.data(), batch_norm_statistics(shape, blocked_x.data()),
                   gamma.data(), beta.data(), kEpsilon, tail, twice.data());
  EXPECT_EQ(once, twice);

  std::vector<float> gradient_once(x.size()), gradient_twice(x.size()), residual_gradient(x.size());
  BatchNormBackward work{
      .shape = shape,
      .x = blocked_x.data(),
      .y = once.data(),
      .statistics = statistics,
      .gamma = gamma.data(),
      .beta = beta.data(),
      .epsilon = kEpsilon,
      .relu = GetParam().relu,
      .y_gradient = gradient.data(),
      .x_gradient = gradient_once.data(),
      .residual_gradient = GetParam().residual ? residual_gradient.data() : nullptr};
  batch_norm_backward(work);
  work.x_gradient = gradient_twice.data();
  batch_norm_backward_apply(work, batch_norm_backward_sums(work),
                            static_cast<double>(shape.batch * shape.pixels()));
  EXPECT_EQ(gradient_once, gradient_twice);
}

INSTANTIATE_TEST_SUITE_P(Tails, BatchNorm,
                         testing::Values(Case{false, false}, Case{false, true}, Case{true, false},
                                         Case{true, true}, Case{false, false, 16},
                                         Case{false, true, 16}, Case{true, false, 16},
                                         Case{true, true, 16}));

TEST(BatchNorm, KeepsWhatIsNotANumber) {
  const ImageShape shape{1, 8, 3, 3};
  std::vector<float> x = random_values(shape.count(), 1), y(x.size());
  const std::vector<float> ones(8, 1.0f);
  x[2 * 8 + 5] = NAN;
  const ChannelStatistics statistics = batch_norm_forward(shape, x.data(), ones.data(), ones.data(),
                                                          kEpsilon, {.relu = true}, y.data());
  EXPECT_TRUE(std::isnan(statistics.mean[5]) && std::isnan(statistics.variance[5]));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 8 == 5) << i;
}

}  // namespace
}  // namespace renkei::compute
