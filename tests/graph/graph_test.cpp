#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/costs.h"
#include "tests/base/thrown_error.h"

namespace renkei::graph {
namespace {

using test::thrown_error;

// x → a → u → b → y
Graph two_ops() {
  Graph graph{.batch = 4};
  graph.values = {{.id = "x"}, {.id = "u"}, {.id = "y"}};
  graph.ops = {{.id = "a", .inputs = {0}, .outputs = {1}},
               {.id = "b", .inputs = {1}, .outputs = {2}}};
  graph.inputs = {0};
  graph.outputs = {2};
  return graph;
}

void expect_refused(Graph graph, const std::string& part) {
  const Error error = thrown_error([&] { check_and_sort(graph, "file"); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(Graph, PutsOpsInTopologicalOrder) {
  Graph graph = two_ops();
  std::swap(graph.ops[0], graph.ops[1]);
  check_and_sort(graph, "file");
  EXPECT_EQ(graph.ops[0].id, "a");
}

TEST(Graph, RefusesACycle) {
  Graph graph = two_ops();
  graph.ops[0].inputs = {0, 2};
  expect_refused(graph, "cycle");
}

TEST(Graph, RefusesAValueThatTwoOpsMake) {
  Graph graph = two_ops();
  graph.ops[1].outputs = {1};
  expect_refused(graph, "value 'u' is made by a and by b");
}

TEST(Graph, RefusesAValueThatNobodyMakes) {
  Graph graph = two_ops();
  graph.inputs = {};
  expect_refused(graph, "value 'x'");
}

TEST(Graph, RefusesAnIdThatIsUsedTwice) {
  Graph graph = two_ops();
  graph.ops[1].id = "a";
  expect_refused(graph, "'a' is used by two ops");
}

TEST(Graph, RefusesPlacesOutOfRangeAndCostsThatAreNone) {
  Graph graph = two_ops();
  graph.ops[1].inputs = {7};
  expect_refused(graph, "place 7");
  graph = two_ops();
  graph.ops[1].backward_seconds = -1;
  expect_refused(graph, "op 'b'");
  expect_refused(Graph{}, "no ops");
}

TEST(Costs, AreALineOverTheSamplesAndSplitTheBackwardPass) {
  Graph graph = two_ops();
  graph.ops[0].forward_seconds = 9;
  graph.ops[0].forward_fixed_seconds = 1;
  graph.ops[0].backward_seconds = 8;
  graph.ops[0].backward_input_share = 0.25;
  const Seconds seconds = op_seconds(graph)[0];
  EXPECT_DOUBLE_EQ(seconds.forward.at(4), 9);
  EXPECT_DOUBLE_EQ(seconds.forward.at(2), 5);
  EXPECT_DOUBLE_EQ(seconds.backward_input.at(4), 2);
  EXPECT_DOUBLE_EQ(seconds.backward_weight.at(2), 3);
}

TEST(Costs, OfAnOpWithoutBatchDoNotScale) {
  Graph graph = two_ops();
  for (Value& value : graph.values) value.batch = false;
  graph.ops[0].forward_seconds = 3;
  EXPECT_DOUBLE_EQ(op_seconds(graph)[0].forward.at(1), 3);
}

TEST(Costs, OfTheRooflineAreWorkOrTrafficWhicheverIsLonger) {
  Graph graph = two_ops();
  graph.ops[0].flops = 100;
  graph.ops[0].traffic_bytes = 10;
  graph.ops[1].flops = 10;
  graph.ops[1].traffic_bytes = 100;
  EXPECT_TRUE(has_work(graph));
  estimate_seconds(graph, {.flops_per_second = 10, .bytes_per_second = 5, .call_seconds = 1});
  EXPECT_DOUBLE_EQ(graph.ops[0].forward_seconds, 11);
  EXPECT_DOUBLE_EQ(graph.ops[1].forward_seconds, 21);
  EXPECT_TRUE(graph.estimated);
}

}  // namespace
}  // namespace renkei::graph
