#include "check/outliers.h"

#include <algorithm>
#include <cmath>

namespace renkei::check {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double spread(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return 1.4826 * median(distances);
}

std::vector<size_t> slow_ones(const std::vector<double>& values, double tolerance) {
  const double middle = median(values);
  const double limit = middle - std::max(tolerance * middle, 5 * spread(values));
  std::vector<size_t> slow;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < limit) slow.push_back(i);
  return slow;
}

}  // namespace renkei::check
