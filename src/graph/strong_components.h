#pragma once

#include <vector>

namespace renkei::graph {

// The strongly connected components of a directed graph (Tarjan, 1972): for each node, a number
// that it shares with the nodes that it reaches and that reach it.
std::vector<int> strong_components(const std::vector<std::vector<int>>& successors);

}  // namespace renkei::graph
