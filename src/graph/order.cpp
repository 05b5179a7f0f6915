#include "graph/order.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include "graph/at.h"

namespace renkei::graph {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// The number of the digits from `begin` on, without leading zeros; `begin` moves behind it.
std::string_view take_number(std::string_view text, size_t& begin) {
  while (begin + 1 < text.size() && text[begin] == '0' && is_digit(text[begin + 1])) ++begin;
  const size_t first = begin;
  while (begin < text.size() && is_digit(text[begin])) ++begin;
  return text.substr(first, begin - first);
}

// Kahn's algorithm; of the ops that could come next, the one with the least (weight, rank of id).
class Sorter {
 public:
  Sorter(const Graph& graph, const std::vector<int>& rank, bool by_bytes)
      : graph_(graph),
        rank_(rank),
        by_bytes_(by_bytes),
        before_(predecessors(graph)),
        after_(graph.ops.size()),
        missing_(graph.ops.size()),
        weight_(graph.ops.size()),
        users_(graph.values.size()) {}

  std::vector<OpIndex> run() {
    look_around();
    for (size_t op = 0; op < graph_.ops.size(); ++op)
      if (missing_[op] == 0) ready_.insert(key(op));
    std::vector<OpIndex> order;
    while (!ready_.empty()) {
      const OpIndex op = by_rank_[at(ready_.begin()->second)];
      ready_.erase(ready_.begin());
      order.push_back(op);
      place(at(op));
    }
    return order;
  }

 private:
  using Key = std::pair<double, int>;
  Key key(size_t op) const { return {weight_[op], rank_[op]}; }

  void look_around() {
    const auto producer = producers(graph_);
    by_rank_.resize(graph_.ops.size());
    for (size_t op = 0; op < graph_.ops.size(); ++op) {
      by_rank_[at(rank_[op])] = static_cast<OpIndex>(op);
      missing_[op] = before_[op].size();
      for (const OpIndex earlier : before_[op]) after_[at(earlier)].push_back(static_cast<int>(op));
      for (const ValueIndex input : graph_.ops[op].inputs)
        if (producer[at(input)] >= 0) users_[at(input)].insert(static_cast<int>(op));
    }
    if (!by_bytes_) return;
    for (size_t op = 0; op < graph_.ops.size(); ++op)
      for (const ValueIndex output : graph_.ops[op].outputs)
        if (!users_[at(output)].empty()) weight_[op] += bytes(output);
    for (size_t value = 0; value < users_.size(); ++value)
      if (users_[value].size() == 1) lighten(static_cast<ValueIndex>(value));
  }

  double bytes(ValueIndex value) const {
    return static_cast<double>(graph_.values[at(value)].bytes);
  }

  // Once the last user of a value is done, the value waits no longer.
  void lighten(ValueIndex value) {
    const size_t last = at(*users_[at(value)].begin());
    const bool is_ready = ready_.erase(key(last)) > 0;
    weight_[last] -= bytes(value);
    if (is_ready) ready_.insert(key(last));
  }

  void place(size_t op) {
    if (by_bytes_)
      for (const ValueIndex input : graph_.ops[op].inputs) {
        auto& left = users_[at(input)];
        if (left.erase(static_cast<int>(op)) > 0 && left.size() == 1) lighten(input);
      }
    for (const int later : after_[op])
      if (--missing_[at(later)] == 0) ready_.insert(key(at(later)));
  }

  const Graph& graph_;
  const std::vector<int>& rank_;
  bool by_bytes_;
  std::vector<std::vector<OpIndex>> before_, after_;
  std::vector<size_t> missing_;
  std::vector<double> weight_;        // bytes that begin to wait, less those that end
  std::vector<std::set<int>> users_;  // of a value: the ops that are not placed yet
  std::vector<OpIndex> by_rank_;
  std::set<Key> ready_;
};

}  // namespace

bool comes_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view left = take_number(a, i), right = take_number(b, j);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // they differ by leading zeros
}

std::vector<double> crossing_along(const Graph& graph, const std::vector<OpIndex>& order) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[at(order[i])] = i;
  const auto producer = producers(graph);
  std::vector<size_t> last_use(graph.values.size());  // and one more; 0: none
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (const ValueIndex value : graph.ops[op].inputs)
      last_use[at(value)] = std::max(last_use[at(value)], place[op] + 1);
  std::vector<double> change(order.size() + 2);
  for (size_t value = 0; value < graph.values.size(); ++value) {
    if (producer[value] < 0 || last_use[value] == 0) continue;
    const auto bytes = static_cast<double>(graph.values[value].bytes);
    change[place[at(producer[value])] + 1] += bytes;
    change[last_use[value]] -= bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

std::vector<OpIndex> canonical_order(const Graph& graph) {
  std::vector<OpIndex> by_id(graph.ops.size());
  std::iota(by_id.begin(), by_id.end(), 0);
  std::ranges::sort(by_id, comes_before, [&](OpIndex op) { return graph.ops[at(op)].id; });
  std::vector<int> rank(by_id.size());
  for (size_t i = 0; i < by_id.size(); ++i) rank[at(by_id[i])] = static_cast<int>(i);
  const auto score = [&](const std::vector<OpIndex>& order) {
    const auto crossing = crossing_along(graph, order);
    return std::accumulate(crossing.begin(), crossing.end(), 0.0);
  };
  auto in_order = Sorter(graph, rank, false).run();
  auto by_bytes = Sorter(graph, rank, true).run();
  return score(by_bytes) < score(in_order) ? by_bytes : in_order;
}

}  // namespace renkei::graph
