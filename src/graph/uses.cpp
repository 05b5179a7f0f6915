#include "graph/uses.h"

#include <algorithm>
#include <unordered_set>

namespace renkei::graph {

using program::ValueId;

namespace {

void sort_each_once(std::vector<int>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Uses::Uses(const program::Program& program, const std::vector<int>& common,
           const std::vector<std::vector<int>>& linked, const std::vector<bool>& known)
    : program_(program),
      linked_(linked),
      known_(known),
      maker_(program.values.size(), -1),
      state_of_(program.values.size(), -1),
      link_of_(program.ops.size(), -1),
      is_common_(program.ops.size()) {
  for (size_t i = 0; i < program.ops.size(); ++i)
    for (const ValueId output : program.ops[i].outputs)
      if (output != program::kNoValue) maker_[static_cast<size_t>(output)] = static_cast<int>(i);
  for (size_t i = 0; i < program.state.size(); ++i)
    state_of_[static_cast<size_t>(program.state[i].value)] = static_cast<int>(i);
  for (const int op : common) is_common_[static_cast<size_t>(op)] = true;
  for (size_t i = 0; i < linked.size(); ++i)
    for (const int op : linked[i]) link_of_[static_cast<size_t>(op)] = static_cast<int>(i);
}

Used Uses::of(std::span<const int> ops) const {
  Used used;
  std::vector<int> left(ops.begin(), ops.end());
  std::unordered_set<int> seen;
  const auto need_common = [&](int op) {
    if (!seen.insert(op).second) return;
    used.common.push_back(op);
    left.push_back(op);
  };
  while (!left.empty()) {
    const int op = left.back();
    left.pop_back();
    if (const int link = link_of_[static_cast<size_t>(op)]; link >= 0)
      for (const int other : linked_[static_cast<size_t>(link)]) need_common(other);
    for (const ValueId value : references(program_.ops[static_cast<size_t>(op)])) {
      const auto v = static_cast<size_t>(value);
      if (known_[v]) continue;
      if (state_of_[v] >= 0)
        used.states.push_back(state_of_[v]);
      else if (maker_[v] >= 0 && is_common_[static_cast<size_t>(maker_[v])])
        need_common(maker_[v]);
      else
        used.values.push_back(value);
    }
  }
  for (auto* list : {&used.values, &used.states, &used.common}) sort_each_once(*list);
  return used;
}

}  // namespace renkei::graph
