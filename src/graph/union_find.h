#pragma once

#include <numeric>
#include <vector>

namespace renkei::graph {

// Sets of the numbers from 0, which grow by joining. The name of a set is its smallest number.
class UnionFind {
 public:
  explicit UnionFind(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int find(int i) {
    while (at(i) != i) i = at(i) = at(at(i));
    return i;
  }
  void join(int a, int b) {
    a = find(a), b = find(b);
    if (a > b) std::swap(a, b);
    at(b) = a;
  }

 private:
  int& at(int i) { return parent_[static_cast<size_t>(i)]; }

  std::vector<int> parent_;
};

}  // namespace renkei::graph
