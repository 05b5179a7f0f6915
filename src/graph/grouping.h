// Which operation of a program belongs to which op of its graph? lowering.h has the rules.
#pragma once

#include <vector>

#include "graph/safe_to_cut.h"

namespace renkei::graph {

struct Grouping {
  std::vector<std::vector<int>> groups;  // places of ops, ascending; by their first
  std::vector<int> common;
  std::vector<std::vector<int>> linked;  // common ops that are needed together
};

// `known` has the values that follow from the number of samples alone.
Grouping group_ops(const SafeToCut& safe, const std::vector<bool>& known);

}  // namespace renkei::graph
