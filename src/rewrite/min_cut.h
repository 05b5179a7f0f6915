// The cheapest division of nodes between two sides.
//
// Every node goes to the near or to the far side. An edge (from, to, cost) is paid for where `from`
// is near and `to` is far. Some nodes are fixed by edges from kNear or to kFar that nobody would
// pay (kInfinite). The cheapest division is a minimum cut, found by augmenting paths in levels
// (Dinic's algorithm): for the sparse graphs of networks about as fast as reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace renkei::rewrite {

class MinCut {
 public:
  static constexpr int kNear = 0, kFar = 1;
  static constexpr int64_t kInfinite = INT64_MAX / 4;

  MinCut();
  int add_node();
  void add_edge(int from, int to, int64_t cost);

  // Of every node, whether it is on the near side; of several cheapest divisions the one with the
  // fewest nodes there. To be called once.
  std::vector<bool> near_side();

 private:
  struct Edge {
    int to;
    int64_t left;  // of its cost, that no path has used yet
  };
  bool find_levels();
  int64_t push(int node, int64_t most);

  std::vector<Edge> edges_;             // an edge and its reverse are neighbours: e and e ^ 1
  std::vector<std::vector<int>> from_;  // of every node
  std::vector<int> level_;
  std::vector<size_t> next_;  // of every node, the first edge that may still lead on
};

}  // namespace renkei::rewrite
