#include "tune/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace renkei::tune {
namespace {

constexpr size_t kFull = 25;  // points of full weight

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

// P(a < Z < b), from the side on which nothing cancels.
double normal_mass(double a, double b) {
  return a > 0 ? normal_cdf(-a) - normal_cdf(-b) : normal_cdf(b) - normal_cdf(a);
}

double scaled(const Parameter& parameter, double value) {
  return parameter.logarithmic ? std::log(value) : value;
}

double interval_low(const Parameter& parameter) {
  const double half = parameter.kind == Kind::integer ? 0.5 : 0;
  return scaled(parameter, parameter.low - half);
}
double interval_high(const Parameter& parameter) {
  const double half = parameter.kind == Kind::integer ? 0.5 : 0;
  return scaled(parameter, parameter.high + half);
}

// A normal number cut off at the interval: draws until one lies inside. The center does, so at
// least half of the draws near an end count.
double cut_normal(Random& random, double center, double sigma, double low, double high) {
  while (true) {
    const double radius = std::sqrt(-2 * std::log(random.uniform()));
    const double value =
        center + sigma * radius * std::cos(2 * std::numbers::pi * random.uniform());
    if (value >= low && value <= high) return value;
  }
}

std::vector<double> neighbour_distances(const std::vector<double>& centers, double low,
                                        double high) {
  const size_t n = centers.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return centers[i]; });
  const double least = (high - low) / std::min(100.0, static_cast<double>(n) + 2);
  std::vector<double> distances(n);
  for (size_t k = 0; k < n; ++k) {
    const double here = centers[order[k]];
    double left = k > 0 ? here - centers[order[k - 1]] : 0;
    double right = k + 1 < n ? centers[order[k + 1]] - here : 0;
    if (n == 1) left = here - low, right = high - here;
    distances[order[k]] = std::clamp(std::max(left, right), least, high - low);
  }
  return distances;
}

std::vector<double> log_weights(size_t points) {
  std::vector<double> weights(points + 1, 1);
  const size_t old = points > kFull ? points - kFull : 0;
  const double first = 1 / static_cast<double>(std::max<size_t>(1, points));
  for (size_t k = 0; k < old; ++k)
    weights[k] = first + (1 - first) * static_cast<double>(k) /
                             static_cast<double>(std::max<size_t>(1, old - 1));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight = std::log(weight / sum);
  return weights;
}

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<const Parameter*> parameters,
                                 const std::vector<Point>& points)
    : points_(points.size()), log_weights_(log_weights(points.size())) {
  for (const Parameter* parameter : parameters) {
    Axis axis{.parameter = parameter, .low = 0, .high = 0};
    for (const Point& point : points) {
      const double value = point.at(parameter->name);
      axis.centers.push_back(parameter->kind == Kind::choice ? value : scaled(*parameter, value));
    }
    if (parameter->kind != Kind::choice) {
      axis.low = interval_low(*parameter);
      axis.high = interval_high(*parameter);
      axis.sigmas = neighbour_distances(axis.centers, axis.low, axis.high);
      for (size_t i = 0; i < points_; ++i)
        axis.log_masses.push_back(
            std::log(normal_mass((axis.low - axis.centers[i]) / axis.sigmas[i],
                                 (axis.high - axis.centers[i]) / axis.sigmas[i])));
      axis.log_masses.push_back(std::log(normal_mass(-0.5, 0.5)));
    }
    axes_.push_back(std::move(axis));
  }
}

double ParzenEstimator::log_component(const Axis& axis, size_t i, double value) const {
  const Parameter& parameter = *axis.parameter;
  const bool prior = i == points_;
  if (parameter.kind == Kind::choice) {
    const auto choices = static_cast<double>(parameter.choices.size());
    if (prior) return -std::log(choices);
    const double smooth = 1 / (static_cast<double>(points_) + 1);
    return std::log((axis.centers[i] == value ? 1 + smooth : smooth) / (1 + choices * smooth));
  }
  const double center = prior ? (axis.low + axis.high) / 2 : axis.centers[i];
  const double sigma = prior ? axis.high - axis.low : axis.sigmas[i];
  if (parameter.kind == Kind::integer)
    return std::log(normal_mass((scaled(parameter, value - 0.5) - center) / sigma,
                                (scaled(parameter, value + 0.5) - center) / sigma)) -
           axis.log_masses[i];
  const double z = (scaled(parameter, value) - center) / sigma;
  return -0.5 * z * z - std::log(sigma * std::sqrt(2 * std::numbers::pi)) - axis.log_masses[i];
}

double ParzenEstimator::log_density(const Point& point) const {
  std::vector<double> logs = log_weights_;
  for (const Axis& axis : axes_) {
    const double value = point.at(axis.parameter->name);
    for (size_t i = 0; i <= points_; ++i) logs[i] += log_component(axis, i, value);
  }
  const double most = *std::ranges::max_element(logs);
  if (most == -std::numeric_limits<double>::infinity()) return most;
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum);
}

Point ParzenEstimator::sample(Random& random) const {
  size_t i = 0;
  for (double left = random.uniform() - std::exp(log_weights_[0]); left > 0 && i < points_;)
    left -= std::exp(log_weights_[++i]);
  const bool prior = i == points_;
  Point point;
  for (const Axis& axis : axes_) {
    const Parameter& parameter = *axis.parameter;
    double& value = point[parameter.name];
    if (parameter.kind == Kind::choice) {
      const double smooth = 1 / (static_cast<double>(points_) + 1);
      const bool keep =
          !prior &&
          random.uniform() * (1 + static_cast<double>(parameter.choices.size()) * smooth) < 1;
      value = keep ? axis.centers[i] : static_cast<double>(random.below(parameter.choices.size()));
      continue;
    }
    const double drawn =
        cut_normal(random, prior ? (axis.low + axis.high) / 2 : axis.centers[i],
                   prior ? axis.high - axis.low : axis.sigmas[i], axis.low, axis.high);
    value = parameter.logarithmic ? std::exp(drawn) : drawn;
    if (parameter.kind == Kind::integer) value = std::round(value);
    value = std::clamp(value, parameter.low, parameter.high);
  }
  return point;
}

}  // namespace renkei::tune
