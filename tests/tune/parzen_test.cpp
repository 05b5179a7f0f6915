#include "tune/parzen.h"

#include <cmath>
#include <limits>

#include "tests/tune/functions.h"
#include "tune/sampler.h"

namespace renkei::tune {
namespace {

using Wide = long double;

Wide wide_cdf(Wide z) {
  return 0.5L * std::erfc(-z / std::sqrt(2.0L));
}

// The formulas of parzen.h word by word, in long double, with products and sums of probabilities
// instead of logarithms.
Wide textbook_density(const std::vector<Parameter>& parameters, const std::vector<Point>& points,
                      const Point& at) {
  const size_t n = points.size();
  Wide sum = 0, weights = 0;
  for (size_t i = 0; i <= n; ++i) {
    Wide product = 1;
    for (const Parameter& p : parameters) {
      const Wide x = at.at(p.name);
      if (p.kind == Kind::choice) {
        const Wide k = static_cast<Wide>(p.choices.size()), smooth = 1 / static_cast<Wide>(n + 1);
        if (i == n)
          product *= 1 / k;
        else
          product *= ((points[i].at(p.name) == at.at(p.name) ? 1 : 0) + smooth) / (1 + k * smooth);
        continue;
      }
      const auto scaled = [&](Wide value) { return p.logarithmic ? std::log(value) : value; };
      const Wide half = p.kind == Kind::integer ? 0.5L : 0;
      const Wide a = scaled(p.low - half), b = scaled(p.high + half);
      const Wide center = i == n ? (a + b) / 2 : scaled(points[i].at(p.name));
      Wide left = -1, right = -1;  // distances of the neighbours
      for (size_t j = 0; i < n && j < n; ++j) {
        const Wide distance = scaled(points[j].at(p.name)) - center;
        if (j == i) continue;
        if (distance < 0 || (distance == 0 && j < i))
          left = left < 0 ? -distance : std::min(left, -distance);
        else
          right = right < 0 ? distance : std::min(right, distance);
      }
      if (n == 1) left = center - a, right = b - center;
      const Wide least = (b - a) / std::min(100.0L, static_cast<Wide>(n) + 2);
      const Wide sigma = i == n ? b - a : std::max(std::max(left, right), least);
      const Wide mass = wide_cdf((b - center) / sigma) - wide_cdf((a - center) / sigma);
      if (p.kind == Kind::integer)
        product *= (wide_cdf((scaled(x + half) - center) / sigma) -
                    wide_cdf((scaled(x - half) - center) / sigma)) /
                   mass;
      else
        product *= std::exp(-0.5L * std::pow((scaled(x) - center) / sigma, 2)) /
                   (sigma * std::sqrt(2 * std::numbers::pi_v<Wide>)) / mass;
    }
    Wide weight = 1;
    if (i + 25 < n) {
      const Wide first = 1 / static_cast<Wide>(n);
      weight =
          first + (1 - first) * static_cast<Wide>(i) / std::max<Wide>(1, static_cast<Wide>(n) - 26);
    }
    weights += weight;
    sum += weight * product;
  }
  return sum / weights;
}

TEST(Parzen, DensitiesEqualTheTextbookOnRecordedHistories) {
  for (const auto& function : test::functions())
    for (const int n : {0, 1, 2, 9, 25, 26, 60, 150}) {
      std::vector<Point> history;
      for (int i = 0; i < n; ++i) history.push_back(random_point(function.space, i, 7));
      std::vector<const Parameter*> parameters;
      for (const Parameter& parameter : function.space.parameters) parameters.push_back(&parameter);
      const ParzenEstimator estimator(parameters, history);
      for (int i = 0; i < 20; ++i) {
        const Point at = random_point(function.space, i, 8);
        const Wide expected = std::log(textbook_density(function.space.parameters, history, at));
        EXPECT_NEAR(estimator.log_density(at), static_cast<double>(expected), 1e-12)
            << function.name << " with " << n;
      }
    }
}

TEST(Parzen, ADensityHasTheMassOne) {
  const Parameter real{.name = "x", .logarithmic = true, .low = 0.01, .high = 10},
      whole{.name = "k", .kind = Kind::integer, .low = 1, .high = 9},
      kind{.name = "c", .kind = Kind::choice, .choices = {"a", "b", "c"}};
  std::vector<Point> history;
  for (int i = 0; i < 12; ++i)
    history.push_back({{"x", 0.02 * (i + 1)}, {"k", i % 4 + 1}, {"c", i % 2}});
  double sum = 0;
  for (int k = 1; k <= 9; ++k)
    sum += std::exp(ParzenEstimator({&whole}, history).log_density({{"k", k}}));
  EXPECT_NEAR(sum, 1, 1e-12);
  sum = 0;
  for (int c = 0; c < 3; ++c)
    sum += std::exp(ParzenEstimator({&kind}, history).log_density({{"c", c}}));
  EXPECT_NEAR(sum, 1, 1e-12);
  sum = 0;  // over the logarithm
  const ParzenEstimator estimator({&real}, history);
  constexpr int kSteps = 20'000;
  const double low = std::log(0.01), step = (std::log(10.0) - low) / kSteps;
  for (int i = 0; i < kSteps; ++i)
    sum += step * std::exp(estimator.log_density({{"x", std::exp(low + (i + 0.5) * step)}}));
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(Parzen, SamplesFollowTheDensity) {
  const Parameter whole{.name = "k", .kind = Kind::integer, .low = 1, .high = 6};
  const std::vector<Point> history{{{"k", 2}}, {{"k", 2}}, {{"k", 5}}};
  const ParzenEstimator estimator({&whole}, history);
  Random random(3, 0);
  std::map<int, double> seen;
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i)
    seen[static_cast<int>(estimator.sample(random).at("k"))] += 1.0 / kDraws;
  for (int k = 1; k <= 6; ++k)
    EXPECT_NEAR(seen[k], std::exp(estimator.log_density({{"k", k}})), 0.015) << k;
}

}  // namespace
}  // namespace renkei::tune
