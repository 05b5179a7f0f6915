#include "graph/strong_components.h"

#include <algorithm>

namespace renkei::graph {
namespace {

// With a stack of its own instead of recursion: a chain of ops can be long.
class Tarjan {
 public:
  explicit Tarjan(const std::vector<std::vector<int>>& successors)
      : successors_(successors),
        component_(successors.size(), -1),
        order_(successors.size(), -1),
        low_(successors.size(), 0) {}

  void visit(int root) {
    if (order_[static_cast<size_t>(root)] >= 0) return;
    enter(root);
    while (!path_.empty()) {
      auto& [node, next] = path_.back();
      const auto n = static_cast<size_t>(node);
      if (next < successors_[n].size()) {
        const auto to = static_cast<size_t>(successors_[n][next++]);
        if (order_[to] < 0)
          enter(static_cast<int>(to));
        else if (component_[to] < 0)
          low_[n] = std::min(low_[n], order_[to]);
        continue;
      }
      leave(n);
    }
  }
  const std::vector<int>& components() const { return component_; }

 private:
  struct Step {
    int node;
    size_t next = 0;
  };

  void enter(int node) {
    order_[static_cast<size_t>(node)] = low_[static_cast<size_t>(node)] = count_++;
    open_.push_back(node);
    path_.push_back({node});
  }

  void leave(size_t n) {
    path_.pop_back();
    if (!path_.empty()) {
      int& above = low_[static_cast<size_t>(path_.back().node)];
      above = std::min(above, low_[n]);
    }
    if (low_[n] != order_[n]) return;
    int node = -1;
    do {
      node = open_.back();
      open_.pop_back();
      component_[static_cast<size_t>(node)] = found_;
    } while (node != static_cast<int>(n));
    ++found_;
  }

  const std::vector<std::vector<int>>& successors_;
  std::vector<int> component_, order_, low_;
  std::vector<int> open_;  // visited, and not yet in a component
  std::vector<Step> path_;
  int count_ = 0, found_ = 0;
};

}  // namespace

std::vector<int> strong_components(const std::vector<std::vector<int>>& successors) {
  Tarjan tarjan(successors);
  for (size_t node = 0; node < successors.size(); ++node) tarjan.visit(static_cast<int>(node));
  return tarjan.components();
}

}  // namespace renkei::graph
