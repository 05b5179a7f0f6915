#include "tune/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace renkei::tune {
namespace {

constexpr double kScott = 0.2;

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

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<const Parameter*> parameters,
                                 const std::vector<Point>& points)
    : points_(points.size()) {
  const auto n = static_cast<double>(std::max<size_t>(1, points.size()));
  const double share =
      std::max(kScott * std::pow(n, -1 / (static_cast<double>(parameters.size()) + 4)),
               1 / std::min(100.0, n + 2));
  for (const Parameter* parameter : parameters) {
    Axis axis{
        .parameter = parameter, .low = 0, .high = 0, .sigma = 0, .centers = {}, .log_masses = {}};
    for (const Point& point : points) {
      const double value = point.at(parameter->name);
      axis.centers.push_back(parameter->kind == Kind::choice ? value : scaled(*parameter, value));
    }
    if (parameter->kind != Kind::choice) {
      axis.low = interval_low(*parameter);
      axis.high = interval_high(*parameter);
      axis.sigma = share * (axis.high - axis.low);
      for (const double center : axis.centers)
        axis.log_masses.push_back(std::log(
            normal_mass((axis.low - center) / axis.sigma, (axis.high - center) / axis.sigma)));
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
  const double sigma = prior ? axis.high - axis.low : axis.sigma;
  if (parameter.kind == Kind::integer)
    return std::log(normal_mass((scaled(parameter, value - 0.5) - center) / sigma,
                                (scaled(parameter, value + 0.5) - center) / sigma)) -
           axis.log_masses[i];
  const double z = (scaled(parameter, value) - center) / sigma;
  return -0.5 * z * z - std::log(sigma * std::sqrt(2 * std::numbers::pi)) - axis.log_masses[i];
}

double ParzenEstimator::log_density(const Point& point) const {
  std::vector<double> logs(points_ + 1, 0);
  for (const Axis& axis : axes_) {
    const double value = point.at(axis.parameter->name);
    for (size_t i = 0; i <= points_; ++i) logs[i] += log_component(axis, i, value);
  }
  const double most = *std::ranges::max_element(logs);
  if (most == -std::numeric_limits<double>::infinity()) return most;
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum) - std::log(static_cast<double>(points_ + 1));
}

Point ParzenEstimator::sample(Random& random) const {
  const size_t i = random.below(points_ + 1);
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
    const double drawn = cut_normal(random, prior ? (axis.low + axis.high) / 2 : axis.centers[i],
                                    prior ? axis.high - axis.low : axis.sigma, axis.low, axis.high);
    value = parameter.logarithmic ? std::exp(drawn) : drawn;
    if (parameter.kind == Kind::integer) value = std::round(value);
    value = std::clamp(value, parameter.low, parameter.high);
  }
  return point;
}

}  // namespace renkei::tune
