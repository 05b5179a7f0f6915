#include "sim/fair_shares.h"

#include <algorithm>

namespace renkei::sim {

std::vector<double> FairShares::rates(std::span<const Route> flows) {
  std::vector<Link> used;
  for (size_t flow = 0; flow < flows.size(); ++flow)
    for (const Link link : flows[flow].links()) {
      OnLink& here = of_link_[static_cast<size_t>(link)];
      if (here.flows == 0) {
        used.push_back(link);
        here.left = capacities_[static_cast<size_t>(link)];
        here.users.clear();
      }
      ++here.flows;
      here.users.push_back(flow);
    }
  constexpr double kUnknown = -1;
  std::vector<double> rates(flows.size(), kUnknown);
  const auto share = [&](Link link) {
    const OnLink& here = of_link_[static_cast<size_t>(link)];
    return here.left / here.flows;
  };
  for (size_t left = flows.size(); left > 0;) {
    std::erase_if(used, [&](Link link) { return of_link_[static_cast<size_t>(link)].flows == 0; });
    const Link fullest = *std::ranges::min_element(used, {}, share);
    const double rate = share(fullest);
    for (const size_t flow : of_link_[static_cast<size_t>(fullest)].users) {
      if (rates[flow] != kUnknown) continue;
      rates[flow] = rate;
      --left;
      for (const Link link : flows[flow].links()) {
        OnLink& here = of_link_[static_cast<size_t>(link)];
        here.left = std::max(0.0, here.left - rate);
        --here.flows;
      }
    }
  }
  return rates;
}

}  // namespace renkei::sim
