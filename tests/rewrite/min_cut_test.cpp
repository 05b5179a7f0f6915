#include "rewrite/min_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace renkei::rewrite {
namespace {

struct Edge {
  int from, to;
  int64_t cost;
};

int64_t cost_of(const std::vector<Edge>& edges, const std::vector<bool>& near) {
  int64_t sum = 0;
  for (const auto& [from, to, cost] : edges)
    if (near[static_cast<size_t>(from)] && !near[static_cast<size_t>(to)]) sum += cost;
  return sum;
}

std::vector<bool> solve(int nodes, const std::vector<Edge>& edges) {
  MinCut cut;
  for (int i = 2; i < nodes; ++i) cut.add_node();
  for (const auto& [from, to, cost] : edges) cut.add_edge(from, to, cost);
  return cut.near_side();
}

TEST(MinCut, IsAsCheapAsTheBestOfAllDivisions) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int nodes = 3 + round % 7;
    std::vector<Edge> edges;
    for (int i = 0; i < 3 * nodes; ++i)
      edges.push_back({static_cast<int>(random() % static_cast<unsigned>(nodes)),
                       static_cast<int>(random() % static_cast<unsigned>(nodes)),
                       static_cast<int64_t>(random() % 20)});
    int64_t best = INT64_MAX;
    for (unsigned bits = 0; bits < (1U << (nodes - 2)); ++bits) {
      std::vector<bool> near{true, false};
      for (int i = 2; i < nodes; ++i) near.push_back(((bits >> (i - 2)) & 1U) != 0);
      best = std::min(best, cost_of(edges, near));
    }
    const auto near = solve(nodes, edges);
    EXPECT_TRUE(near[MinCut::kNear]);
    EXPECT_FALSE(near[MinCut::kFar]);
    EXPECT_EQ(cost_of(edges, near), best);
  }
}

TEST(MinCut, OfEqualDivisionsTakesTheOneWithFewestNodesOnTheNearSide) {
  EXPECT_EQ(solve(3, {{0, 2, 5}, {2, 1, 5}}), (std::vector<bool>{true, false, false}));
}

TEST(MinCut, HoldsForChainsOfManyThousands) {
  constexpr int kNodes = 50'000;
  std::vector<Edge> edges{{MinCut::kNear, 2, MinCut::kInfinite}};
  for (int i = 2; i + 1 < kNodes; ++i) edges.push_back({i, i + 1, i == 30'000 ? 1 : 9});
  edges.push_back({kNodes - 1, MinCut::kFar, MinCut::kInfinite});
  const auto near = solve(kNodes, edges);
  EXPECT_TRUE(near[30'000]);
  EXPECT_FALSE(near[30'001]);
}

}  // namespace
}  // namespace renkei::rewrite
