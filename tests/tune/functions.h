// Functions whose least value is known, to search with.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "tune/space.h"

namespace renkei::tune::test {

struct Function {
  std::string name;
  Space space;
  std::function<double(const Point&)> value;
};

inline Space box(int dimensions, double low, double high) {
  Space space;
  for (int i = 0; i < dimensions; ++i)
    space.parameters.push_back({.name = "x" + std::to_string(i), .low = low, .high = high});
  return space;
}

inline std::vector<double> coordinates(const Point& point) {
  std::vector<double> x;
  for (const auto& [name, value] : point) x.push_back(value);
  return x;
}

inline double branin(const Point& point) {
  const double x = point.at("x0"), y = point.at("x1"), pi = std::numbers::pi;
  const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

inline double hartmann6(const Point& point) {
  constexpr double c[4] = {1, 1.2, 3, 3.2};
  constexpr double a[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                              {0.05, 10, 17, 0.1, 8, 14},
                              {3, 3.5, 1.7, 10, 17, 8},
                              {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double p[4][6] = {{.1312, .1696, .5569, .0124, .8283, .5886},
                              {.2329, .4135, .8307, .3736, .1004, .9991},
                              {.2348, .1451, .3522, .2883, .3047, .6650},
                              {.4047, .8828, .8732, .5743, .1091, .0381}};
  const std::vector<double> x = coordinates(point);
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    double inner = 0;
    for (size_t j = 0; j < 6; ++j) inner += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j]);
    sum -= c[i] * std::exp(-inner);
  }
  return sum;
}

inline double ackley(const Point& point) {
  const std::vector<double> x = coordinates(point);
  double squares = 0, cosines = 0;
  for (const double value : x) {
    squares += value * value;
    cosines += std::cos(2 * std::numbers::pi * value);
  }
  const auto n = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 +
         std::numbers::e;
}

inline double rosenbrock(const Point& point) {
  const std::vector<double> x = coordinates(point);
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

// Like a learning rate, a decay, a depth and a kind: logarithms, an integer, a choice.
inline double mixed(const Point& point) {
  const double kinds[] = {0.5, 0, 1};
  return std::pow(std::log10(point.at("rate")) + 2, 2) +
         0.5 * std::pow(std::log10(point.at("decay")) + 4, 2) +
         0.05 * std::pow(point.at("depth") - 7, 2) + kinds[static_cast<size_t>(point.at("kind"))];
}

inline std::vector<Function> functions() {
  Space branin_box = box(2, -5, 10);
  branin_box.parameters[1].low = 0;
  branin_box.parameters[1].high = 15;
  Space mixture;
  mixture.parameters = {{.name = "decay", .logarithmic = true, .low = 1e-6, .high = 1e-1},
                        {.name = "depth", .kind = Kind::integer, .low = 1, .high = 20},
                        {.name = "kind", .kind = Kind::choice, .choices = {"a", "b", "c"}},
                        {.name = "rate", .logarithmic = true, .low = 1e-5, .high = 1}};
  return {{"branin", branin_box, branin},
          {"hartmann6", box(6, 0, 1), hartmann6},
          {"ackley5", box(5, -32.768, 32.768), ackley},
          {"rosenbrock4", box(4, -5, 10), rosenbrock},
          {"mixed", mixture, mixed}};
}

}  // namespace renkei::tune::test
