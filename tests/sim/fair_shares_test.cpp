#include "sim/fair_shares.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace renkei::sim {
namespace {

Route over(std::vector<Link> links) {
  Route route;
  for (const Link link : links) route.places[static_cast<size_t>(route.count++)] = link;
  return route;
}

TEST(FairShares, AFlowThatIsHeldBackLeavesTheRestToOthers) {
  const std::vector<double> capacities{10, 3};
  FairShares shares(capacities);
  // Two on the wide link, one of them also on the narrow one, with a third.
  const std::vector<Route> flows{over({0}), over({0, 1}), over({1})};
  EXPECT_EQ(shares.rates(flows), (std::vector<double>{8.5, 1.5, 1.5}));
  EXPECT_EQ(shares.rates(std::vector{over({0})}), (std::vector<double>{10}));  // again, alone
}

// What max-min fair means: no link above its capacity, and each flow has a full link on which none
// is faster.
TEST(FairShares, EachFlowHasAFullLinkOnWhichNoneIsFaster) {
  for (uint32_t round = 0; round < 200; ++round) {
    Random random(1, RandomUse::simulated_jitter, round, 0);
    std::vector<double> capacities;
    for (int link = 0; link < 8; ++link) capacities.push_back(1 + random.below(9));
    std::vector<Route> flows;
    for (uint32_t flow = 0; flow < 1 + random.below(12); ++flow) {
      std::vector<Link> links;
      for (Link link = 0; link < 8; ++link)
        if (links.size() < 6 && random.below(3) == 0) links.push_back(link);
      if (links.empty()) links.push_back(static_cast<Link>(random.below(8)));
      flows.push_back(over(links));
    }
    const std::vector<double> rates = FairShares(capacities).rates(flows);
    std::vector<double> used(capacities.size()), fastest(capacities.size());
    for (size_t flow = 0; flow < flows.size(); ++flow)
      for (const Link link : flows[flow].links()) {
        used[static_cast<size_t>(link)] += rates[flow];
        fastest[static_cast<size_t>(link)] =
            std::max(fastest[static_cast<size_t>(link)], rates[flow]);
      }
    for (size_t link = 0; link < used.size(); ++link)
      EXPECT_LE(used[link], capacities[link] + 1e-9);
    for (size_t flow = 0; flow < flows.size(); ++flow) {
      bool held = false;
      for (const Link link : flows[flow].links()) {
        const auto at = static_cast<size_t>(link);
        held |= used[at] > capacities[at] - 1e-9 && rates[flow] > fastest[at] - 1e-9;
      }
      EXPECT_TRUE(held) << "flow " << flow << " of round " << round;
    }
  }
}

}  // namespace
}  // namespace renkei::sim
