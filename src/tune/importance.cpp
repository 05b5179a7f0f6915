#include <algorithm>
#include <map>

#include "tune/search.h"

namespace renkei::tune {
namespace {

constexpr size_t kBins = 5;

struct Sum {
  double count = 0, sum = 0;
};

}  // namespace

std::vector<std::pair<std::string, double>> importance(const Space& space,
                                                       const std::vector<Trial>& trials) {
  std::vector<std::pair<std::string, double>> shares;
  for (const Parameter& parameter : space.parameters) {
    std::vector<std::pair<double, double>> pairs;  // value, loss
    for (const Trial& trial : trials)
      if (const auto value = trial.point.find(parameter.name);
          trial.loss && value != trial.point.end())
        pairs.emplace_back(value->second, *trial.loss);
    std::ranges::sort(pairs);
    double mean = 0, total = 0, between = 0;
    for (const auto& [value, loss] : pairs) mean += loss / static_cast<double>(pairs.size());
    std::map<double, Sum> bins;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const double bin = parameter.kind == Kind::choice
                             ? pairs[i].first
                             : static_cast<double>(i * kBins / pairs.size());
      bins[bin].count += 1;
      bins[bin].sum += pairs[i].second;
      total += (pairs[i].second - mean) * (pairs[i].second - mean);
    }
    for (const auto& [bin, part] : bins) {
      const double distance = part.sum / part.count - mean;
      between += part.count * distance * distance;
    }
    shares.emplace_back(parameter.name, total > 0 ? between / total : 0);
  }
  std::ranges::stable_sort(shares, std::greater<>(),
                           [](const auto& share) { return share.second; });
  return shares;
}

}  // namespace renkei::tune
