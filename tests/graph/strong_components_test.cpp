#include "graph/strong_components.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace renkei::graph {
namespace {

using Successors = std::vector<std::vector<int>>;

// Whether each node reaches each, by looking.
std::vector<std::vector<bool>> reachable(const Successors& successors) {
  std::vector<std::vector<bool>> reach(successors.size(), std::vector<bool>(successors.size()));
  for (size_t from = 0; from < successors.size(); ++from) {
    std::vector<size_t> left{from};
    while (!left.empty()) {
      const size_t node = left.back();
      left.pop_back();
      if (reach[from][node]) continue;
      reach[from][node] = true;
      for (const int next : successors[node]) left.push_back(static_cast<size_t>(next));
    }
  }
  return reach;
}

TEST(StrongComponents, AreThoseWhoReachEachOther) {
  Random random(1, RandomUse::random_input, 0, 11);
  for (int round = 0; round < 200; ++round) {
    const uint32_t count = 1 + random.below(12);
    Successors successors(count);
    for (uint32_t edge = random.below(2 * count); edge > 0; --edge)
      successors[random.below(count)].push_back(static_cast<int>(random.below(count)));
    const auto reach = reachable(successors);
    const std::vector<int> component = strong_components(successors);
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < count; ++b)
        ASSERT_EQ(component[a] == component[b], reach[a][b] && reach[b][a]) << a << " " << b;
  }
}

TEST(StrongComponents, OfALongChainNeedNoStack) {
  Successors successors(1'000'000);
  for (size_t i = 1; i < successors.size(); ++i) successors[i - 1].push_back(static_cast<int>(i));
  successors.back().push_back(0);
  EXPECT_EQ(strong_components(successors)[0], strong_components(successors).back());
}

}  // namespace
}  // namespace renkei::graph
