#include "graph/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/graph/graphs.h"

namespace renkei::graph {
namespace {

// A diamond: a → b → d and a → c → d.
Graph diamond() {
  Graph graph{.batch = 1};
  graph.values = {{.id = "x"},
                  {.id = "a", .bytes = 1},
                  {.id = "b", .bytes = 10},
                  {.id = "c", .bytes = 100, .gradient = false},
                  {.id = "d", .bytes = 1000}};
  graph.ops = {{.id = "a", .inputs = {0}, .outputs = {1}},
               {.id = "b", .inputs = {1}, .outputs = {2}},
               {.id = "c", .inputs = {1}, .outputs = {3}},
               {.id = "d", .inputs = {2, 3}, .outputs = {4}}};
  graph.inputs = {0};
  graph.outputs = {4};
  check_and_sort(graph, "diamond");
  return graph;
}

TEST(Cuts, OfADiamondAreAllSetsClosedUnderPredecessors) {
  const Graph graph = diamond();
  const Cuts cuts(graph, {op_seconds(graph)});
  std::set<std::vector<OpIndex>> sets;
  for (size_t cut = 0; cut < cuts.size(); ++cut) sets.insert(cuts.ops_between(0, cut));
  EXPECT_EQ(sets,
            (std::set<std::vector<OpIndex>>{{}, {0}, {0, 1}, {0, 2}, {0, 1, 2}, {0, 1, 2, 3}}));
  EXPECT_TRUE(cuts.complete());
  EXPECT_FALSE(cuts.linear());
}

TEST(Cuts, AreCrossedByWhatIsUsedLater) {
  const Graph graph = diamond();
  const Cuts cuts(graph, {op_seconds(graph)});
  const std::map<std::vector<OpIndex>, std::pair<double, double>> expected{
      {{}, {0, 0}},       {{0}, {1, 1}},          {{0, 1}, {11, 11}},
      {{0, 2}, {101, 1}}, {{0, 1, 2}, {110, 10}}, {{0, 1, 2, 3}, {0, 0}}};
  for (size_t cut = 0; cut < cuts.size(); ++cut) {
    const std::pair found{cuts.crossing_bytes(cut).at(1), cuts.crossing_gradient_bytes(cut).at(1)};
    EXPECT_EQ(found, expected.at(cuts.ops_between(0, cut)));
  }
}

// Costs between any two nested cuts, against sums over the ops.
TEST(Cuts, CostsBetweenAnyTwoAreTheSumsOverTheirOps) {
  Random random(3, RandomUse::random_input, 0, 0);
  for (int round = 0; round < 50; ++round) {
    const Graph graph = test::random_graph({.ops = 3 + round % 7, .share_parameter = 0.4}, random);
    const auto seconds = op_seconds(graph);
    const Cuts cuts(graph, {seconds});
    for (size_t to = 0; to < cuts.size(); ++to)
      for (size_t from = 0; from < cuts.size(); ++from) {
        const auto inner = cuts.ops_between(0, from), outer = cuts.ops_between(0, to);
        ASSERT_EQ(cuts.contains(to, from),
                  inner.size() < outer.size() && std::ranges::includes(outer, inner));
        if (!cuts.contains(to, from)) continue;
        double forward = 0, saved = 0, workspace = 0;
        std::set<ParameterIndex> parameters;
        for (const OpIndex index : cuts.ops_between(from, to)) {
          const Op& op = graph.ops[static_cast<size_t>(index)];
          forward += seconds[static_cast<size_t>(index)].forward.at(3);
          saved += static_cast<double>(op.saved_bytes);
          workspace = std::max(workspace, static_cast<double>(op.workspace_bytes));
          parameters.insert(op.parameters.begin(), op.parameters.end());
        }
        double trainable = 0, buffers = 0;
        for (const ParameterIndex index : parameters) {
          const Parameter& parameter = graph.parameters[static_cast<size_t>(index)];
          (parameter.trainable ? trainable : buffers) += static_cast<double>(parameter.bytes);
        }
        const RangeBytes bytes = cuts.bytes(from, to);
        ASSERT_NEAR(cuts.seconds(0, from, to).forward.at(3), forward, 1e-12);
        ASSERT_NEAR(bytes.saved.at(static_cast<double>(graph.batch)), saved, 1e-6);
        ASSERT_DOUBLE_EQ(bytes.trainable, trainable);
        ASSERT_DOUBLE_EQ(bytes.buffers, buffers);
        ASSERT_EQ(cuts.workspace_bytes(from, to), workspace);
      }
  }
}

TEST(Cuts, OfALongGraphAreBeginningsThatFewBytesCross) {
  Graph graph = test::network_graph(
      "bert", {{"layers", "40"}, {"hidden", "64"}, {"sequence", "128"}, {"vocabulary", "100"}});
  estimate_seconds(graph, {1e12, 1e11, 0});
  const Cuts cuts(graph, {op_seconds(graph)}, {.most_sets = 100, .most_prefixes = 64});
  EXPECT_FALSE(cuts.complete());
  EXPECT_TRUE(cuts.linear());
  EXPECT_LE(cuts.size(), 66u);
  EXPECT_GT(cuts.size(), 40u);
  // Between layers one hidden state crosses; inside attention much more would.
  const double hidden_state = 64 * 128 * 4;
  int narrow = 0;
  for (size_t cut = 1; cut < cuts.last(); ++cut)
    narrow += cuts.crossing_bytes(cut).at(1) == hidden_state;
  EXPECT_GE(narrow, 35);
}

TEST(Cuts, KnowTiedParametersThatAreSplit) {
  Graph graph = test::chain_graph(3);
  graph.ops[2].parameters.push_back(0);  // as the scores of a language model use its embedding
  const Cuts cuts(graph, {op_seconds(graph)});
  EXPECT_EQ(cuts.bytes(0, cuts.last()).tied, 0);
  EXPECT_EQ(cuts.bytes(0, 1).tied, 256);
  EXPECT_EQ(cuts.bytes(1, cuts.last()).tied, 256);
  EXPECT_EQ(cuts.bytes(1, 2).tied, 0);
  EXPECT_EQ(cuts.bytes(0, cuts.last()).trainable, static_cast<double>(parameter_bytes(graph)));
}

}  // namespace
}  // namespace renkei::graph
