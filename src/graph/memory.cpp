#include "graph/memory.h"

#include <algorithm>

#include "program/effects.h"
#include "program/memory.h"

namespace renkei::graph {

using program::ValueId;

Memory::Memory(const program::Program& program) {
  const size_t values = program.values.size();
  maker_.assign(values, kGiven);
  last_use_.assign(values, kGiven);
  written_.resize(program.ops.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const program::Op& op = program.ops[i];
    for (const ValueId value : references(op))
      last_use_[static_cast<size_t>(value)] = static_cast<int>(i);
    for (const ValueId output : op.outputs)
      if (output != program::kNoValue) maker_[static_cast<size_t>(output)] = static_cast<int>(i);
  }
  for (const program::Port& output : program.outputs)
    last_use_[static_cast<size_t>(output.value)] = static_cast<int>(program.ops.size());

  const std::vector<ValueId> roots = memory_roots(program);
  std::vector<int> number(values, -1);
  class_of_.resize(values);
  for (size_t v = 0; v < values; ++v) {
    int& place = number[static_cast<size_t>(roots[v])];
    if (place < 0) {
      place = static_cast<int>(classes_.size());
      classes_.emplace_back();
    }
    class_of_[v] = place;
    classes_[static_cast<size_t>(place)].members.push_back(static_cast<ValueId>(v));
  }
  for (size_t i = 0; i < program.ops.size(); ++i) {
    for (const ValueId value : written_values(program.ops[i]))
      written_[i].push_back(class_of(value));
    std::ranges::sort(written_[i]);
    written_[i].erase(std::unique(written_[i].begin(), written_[i].end()), written_[i].end());
    for (const int c : written_[i])
      classes_[static_cast<size_t>(c)].writers.push_back(static_cast<int>(i));
  }
  find_owners(program);
}

void Memory::find_owners(const program::Program& program) {
  const auto owner = [&](ValueId value) -> Owner& {
    return classes_[static_cast<size_t>(class_of(value))].owner;
  };
  for (const program::Port& input : program.inputs) owner(input.value) = Owner::input;
  for (const program::State& state : program.state) owner(state.value) = Owner::state;
  for (Class& c : classes_) {
    std::ranges::stable_sort(c.members, {}, [&](ValueId value) { return maker(value); });
    latest_.emplace_back();
    int latest = kGiven;
    for (const ValueId member : c.members)
      latest_.back().push_back(latest = std::max(latest, last_use(member)));
  }
}

bool Memory::is_seen_after(int op, int written_class) const {
  // What is made later is made from another name, which is used then, or from the result.
  const auto& members = classes_[static_cast<size_t>(written_class)].members;
  const auto end = std::ranges::lower_bound(members, op, {}, [&](ValueId v) { return maker(v); });
  const auto count = static_cast<size_t>(end - members.begin());
  return count > 0 && latest_[static_cast<size_t>(written_class)][count - 1] > op;
}

}  // namespace renkei::graph
