#include "rewrite/min_cut.h"

#include <algorithm>

namespace renkei::rewrite {

MinCut::MinCut() : from_(2) {}

int MinCut::add_node() {
  from_.emplace_back();
  return static_cast<int>(from_.size()) - 1;
}

void MinCut::add_edge(int from, int to, int64_t cost) {
  const auto add = [&](int a, int b, int64_t left) {
    from_[static_cast<size_t>(a)].push_back(static_cast<int>(edges_.size()));
    edges_.push_back({b, left});
  };
  add(from, to, cost);
  add(to, from, 0);
}

bool MinCut::find_levels() {
  level_.assign(from_.size(), -1);
  level_[kNear] = 0;
  std::vector<int> queue{kNear};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto node = static_cast<size_t>(queue[i]);
    for (const int e : from_[node]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      int& level = level_[static_cast<size_t>(edge.to)];
      if (edge.left == 0 || level >= 0) continue;
      level = level_[node] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[kFar] >= 0;
}

// Depth first, without recursion: a network may be thousands of operations deep.
int64_t MinCut::push(int start, int64_t most) {
  std::vector<int> path;  // edges
  int node = start;
  while (node != kFar) {
    auto& next = next_[static_cast<size_t>(node)];
    const auto& edges = from_[static_cast<size_t>(node)];
    while (next < edges.size()) {
      const Edge& edge = edges_[static_cast<size_t>(edges[next])];
      if (edge.left > 0 &&
          level_[static_cast<size_t>(edge.to)] == level_[static_cast<size_t>(node)] + 1)
        break;
      ++next;
    }
    if (next < edges.size()) {
      path.push_back(edges[next]);
      node = edges_[static_cast<size_t>(edges[next])].to;
    } else if (path.empty()) {
      return 0;
    } else {  // a dead end
      node = edges_[static_cast<size_t>(path.back() ^ 1)].to;
      path.pop_back();
      ++next_[static_cast<size_t>(node)];
    }
  }
  for (const int e : path) most = std::min(most, edges_[static_cast<size_t>(e)].left);
  for (const int e : path) {
    edges_[static_cast<size_t>(e)].left -= most;
    edges_[static_cast<size_t>(e ^ 1)].left += most;
  }
  return most;
}

std::vector<bool> MinCut::near_side() {
  while (find_levels()) {
    next_.assign(from_.size(), 0);
    while (push(kNear, kInfinite) > 0) {
    }
  }
  std::vector<bool> near(from_.size());
  for (size_t node = 0; node < near.size(); ++node) near[node] = level_[node] >= 0;
  return near;
}

}  // namespace renkei::rewrite
