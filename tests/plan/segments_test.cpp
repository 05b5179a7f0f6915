#include "plan/segments.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"

namespace renkei::plan {
namespace {

// A chain for one sample: op i keeps saved[i] bytes and gives crossing[i] to the next.
graph::Graph chain(const std::vector<int64_t>& saved, const std::vector<int64_t>& crossing) {
  graph::Graph graph{.batch = 1};
  graph.values.push_back({.id = "x", .bytes = 1});
  for (size_t i = 0; i < saved.size(); ++i) {
    const auto value = static_cast<graph::ValueIndex>(i);
    graph.values.push_back({.id = std::to_string(i), .bytes = crossing[i]});
    graph.ops.push_back({.id = std::to_string(i),
                         .inputs = {value},
                         .outputs = {value + 1},
                         .saved_bytes = saved[i]});
  }
  graph.inputs = {0};
  graph.outputs = {static_cast<graph::ValueIndex>(saved.size())};
  check_and_sort(graph, "chain");
  return graph;
}

graph::Cuts cuts_of(const graph::Graph& graph) {
  return {graph, {op_seconds(graph)}};
}

TEST(Segments, AreAsManyAsTheRootOfTheOps) {
  const graph::Graph graph = chain(std::vector<int64_t>(16, 10), std::vector<int64_t>(16, 10));
  const Segments segments = cheapest_segments(cuts_of(graph), 0, 16, 1, 1);
  EXPECT_EQ(segments.cuts, (std::vector<size_t>{4, 8, 12}));
  EXPECT_EQ(segments.kept_bytes, 30);
  EXPECT_EQ(segments.saved_bytes, 40);
}

TEST(Segments, AreFewerWithMoreMicroBatchesInFlight) {
  const graph::Graph graph = chain(std::vector<int64_t>(16, 10), std::vector<int64_t>(16, 10));
  EXPECT_EQ(cheapest_segments(cuts_of(graph), 0, 16, 1, 4).cuts, (std::vector<size_t>{8}));
  EXPECT_EQ(cheapest_segments(cuts_of(graph), 0, 16, 1, 100).cuts, std::vector<size_t>{});
}

TEST(Segments, CutWhereLittleCrosses) {
  const graph::Graph graph = chain({10, 10, 10, 10, 10, 10}, {90, 2, 90, 90, 3, 90});
  EXPECT_EQ(cheapest_segments(cuts_of(graph), 0, 6, 1, 1).cuts, (std::vector<size_t>{2, 5}));
}

// All choices of cuts of a chain of ten ops.
double least_bytes(const std::vector<int64_t>& saved, const std::vector<int64_t>& crossing) {
  double least = 1e300;
  for (unsigned choice = 0; choice < 1u << (saved.size() - 1); ++choice) {
    double kept = 0, segment = 0, most = 0;
    for (size_t i = 0; i < saved.size(); ++i) {
      segment += static_cast<double>(saved[i]);
      most = std::max(most, segment);
      if (i + 1 < saved.size() && choice >> i & 1) {
        kept += static_cast<double>(crossing[i]);
        segment = 0;
      }
    }
    least = std::min(least, kept + most);
  }
  return least;
}

TEST(Segments, AreTheBestOfAllChoices) {
  for (uint64_t c = 0; c < 200; ++c) {
    Random random(c, RandomUse::shuffle, 0, 0);
    std::vector<int64_t> saved, crossing;
    for (int i = 0; i < 10; ++i) {
      saved.push_back(1 + random.below(50));
      crossing.push_back(1 + random.below(30));
    }
    const graph::Graph graph = chain(saved, crossing);
    EXPECT_DOUBLE_EQ(cheapest_segments(cuts_of(graph), 0, 10, 1, 1).bytes(1),
                     least_bytes(saved, crossing));
  }
}

}  // namespace
}  // namespace renkei::plan
