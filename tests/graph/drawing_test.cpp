#include "graph/drawing.h"

#include <gtest/gtest.h>

#include "tests/graph/graphs.h"

namespace renkei::graph {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Drawing, HasABoxForEachOpAndMarksWhatCrossesStages) {
  Graph graph = test::chain_graph(5);
  graph.ops[0].name = "a<b & \"c\"";
  const std::string svg = svg_drawing(graph, {0, 0, 0, 1, 1});
  EXPECT_EQ(count(svg, "<g>"), 5u);
  EXPECT_EQ(count(svg, "stroke=\"#c00\""), 1u);
  EXPECT_EQ(count(svg, "stroke=\"#999\""), 3u);
  EXPECT_NE(svg.find("a&lt;b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(Drawing, OfALargeGraphHasABoxForEachStage) {
  const Graph graph = test::chain_graph(101);
  std::vector<int> stages(graph.ops.size());
  for (size_t op = 0; op < stages.size(); ++op) stages[op] = static_cast<int>(op / 40);
  EXPECT_EQ(count(svg_drawing(graph, stages, 20), "<g>"), 3u);
}

}  // namespace
}  // namespace renkei::graph
