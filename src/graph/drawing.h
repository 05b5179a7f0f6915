#pragma once

#include <string>

#include "graph/graph.h"

namespace renkei::graph {

// A graph as a picture (SVG): a box for each op, below all that it needs, coloured by stage. Graphs
// of more than `most_boxes` ops are drawn with a box for each stage.
std::string svg_drawing(const Graph& graph, const std::vector<int>& stage_of_op,
                        size_t most_boxes = 1500);

}  // namespace renkei::graph
