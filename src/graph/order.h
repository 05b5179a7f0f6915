// A topological order that follows from the graph alone, so that the order in which a file lists
// its ops changes no plan. Where not all cuts of a graph can be looked at, those along this order
// are, so an order is good when few bytes cross them. Of two the better is taken:
//
//   by id      of the ops that could come next the one with the lowest id; a program numbers its
//              ops in the order in which it was written
//   by bytes   the op after which the fewest bytes wait for their users
#pragma once

#include <vector>

#include "graph/graph.h"

namespace renkei::graph {

std::vector<OpIndex> canonical_order(const Graph& graph);

// Bytes that cross from the first p ops of an order to the rest, for each p.
std::vector<double> crossing_along(const Graph& graph, const std::vector<OpIndex>& order);

// Whether id a comes before b: numbers in them count as numbers, so that op9 comes before op10.
bool comes_before(const std::string& a, const std::string& b);

}  // namespace renkei::graph
