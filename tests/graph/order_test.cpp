#include "graph/order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/graph/graphs.h"

namespace renkei::graph {
namespace {

std::vector<std::string> ids_in(const Graph& graph, const std::vector<OpIndex>& order) {
  std::vector<std::string> ids;
  for (const OpIndex op : order) ids.push_back(graph.ops[static_cast<size_t>(op)].id);
  return ids;
}

TEST(Order, CountsNumbersInIdsAsNumbers) {
  EXPECT_TRUE(comes_before("9", "10"));
  EXPECT_TRUE(comes_before("op9.a", "op10"));
  EXPECT_TRUE(comes_before("a", "b"));
  EXPECT_TRUE(comes_before("op", "op1"));
  EXPECT_FALSE(comes_before("op1", "op1"));
  EXPECT_TRUE(comes_before("01", "1") != comes_before("1", "01"));
}

TEST(Order, OfALineIsTheLine) {
  for (const std::string name : {"lenet", "vgg16"}) {
    const Graph graph = test::network_graph(name);
    const auto order = canonical_order(graph);
    EXPECT_TRUE(std::ranges::is_sorted(order)) << name;
  }
}

TEST(Order, DoesNotDependOnTheOrderOfTheFile) {
  Random random(1, RandomUse::random_input, 0, 0);
  for (int round = 0; round < 50; ++round) {
    const Graph graph = test::random_graph({.ops = 30, .fork_share = 0.3}, random);
    Graph other = graph;
    std::ranges::reverse(other.ops);  // sorted again by what depends on what
    check_and_sort(other, "reversed");
    EXPECT_EQ(ids_in(graph, canonical_order(graph)), ids_in(other, canonical_order(other)));
  }
}

TEST(Order, IsTopological) {
  Random random(2, RandomUse::random_input, 0, 0);
  for (int round = 0; round < 50; ++round) {
    const Graph graph = test::random_graph({.ops = 30, .fork_share = 0.3}, random);
    const auto before = predecessors(graph);
    std::vector<bool> placed(graph.ops.size());
    for (const OpIndex op : canonical_order(graph)) {
      for (const OpIndex earlier : before[static_cast<size_t>(op)])
        EXPECT_TRUE(placed[static_cast<size_t>(earlier)]);
      placed[static_cast<size_t>(op)] = true;
    }
    EXPECT_EQ(std::ranges::count(placed, true), 30);
  }
}

}  // namespace
}  // namespace renkei::graph
