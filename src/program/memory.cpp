#include "program/memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "program/effects.h"

namespace renkei::program {
namespace {

size_t place(ValueId id) {
  return static_cast<size_t>(id);
}

ValueId find_root(std::vector<ValueId>& roots, ValueId id) {
  while (roots[place(id)] != id) id = roots[place(id)] = roots[place(roots[place(id)])];
  return id;
}

void join(std::vector<ValueId>& roots, ValueId a, ValueId b) {
  const ValueId left = find_root(roots, a), right = find_root(roots, b);
  roots[place(std::max(left, right))] = std::min(left, right);
}

std::vector<ValueId> shared_values(const Op& op) {
  const Argument* shared = find_argument(op, alias_of(op));
  if (!shared) return {};
  return references({.target = {}, .arguments = {{"shared", *shared}}, .outputs = {}});
}

// Asserts and the like make nothing, and what is opaque may do anything.
bool has_other_effects(const Op& op) {
  return op.outputs.empty() || op.target.starts_with("renkei.opaque");
}

}  // namespace

std::vector<ValueId> memory_roots(const Program& program) {
  std::vector<ValueId> roots(program.values.size());
  std::iota(roots.begin(), roots.end(), 0);
  for (const Op& op : program.ops)
    for (const ValueId shared : shared_values(op))
      for (const ValueId output : op.outputs)
        if (output != kNoValue) join(roots, shared, output);
  for (ValueId id = 0; place(id) < roots.size(); ++id) roots[place(id)] = find_root(roots, id);
  return roots;
}

std::vector<std::vector<const State*>> changed_state(const Program& program) {
  const std::vector<ValueId> roots = memory_roots(program);
  std::multimap<ValueId, const State*> state_at;
  for (const State& state : program.state) state_at.emplace(roots[place(state.value)], &state);
  std::vector<std::vector<const State*>> changed(program.ops.size());
  for (size_t i = 0; i < program.ops.size(); ++i)
    for (const ValueId written : written_values(program.ops[i])) {
      const auto [first, last] = state_at.equal_range(roots[place(written)]);
      for (auto at = first; at != last; ++at) changed[i].push_back(at->second);
    }
  return changed;
}

void remove_dead_ops(Program& program) {
  const std::vector<ValueId> roots = memory_roots(program);
  std::vector<bool> needed(program.values.size());         // values
  std::vector<bool> memory_needed(program.values.size());  // roots
  const auto need = [&](ValueId id) {
    needed[place(id)] = memory_needed[place(roots[place(id)])] = true;
  };
  for (const Port& output : program.outputs) need(output.value);
  for (const State& state : program.state) memory_needed[place(roots[place(state.value)])] = true;
  for (const Port& input : program.inputs) memory_needed[place(roots[place(input.value)])] = true;

  std::vector<Op> kept;
  for (auto op = program.ops.rbegin(); op != program.ops.rend(); ++op) {
    const auto is_needed = [&](ValueId id) { return id != kNoValue && needed[place(id)]; };
    const auto changes_needed = [&](ValueId id) { return memory_needed[place(roots[place(id)])]; };
    const auto written = written_values(*op);
    if (!has_other_effects(*op) &&
        std::none_of(op->outputs.begin(), op->outputs.end(), is_needed) &&
        std::none_of(written.begin(), written.end(), changes_needed))
      continue;
    for (const ValueId id : references(*op)) need(id);
    kept.push_back(std::move(*op));
  }
  std::reverse(kept.begin(), kept.end());
  program.ops = std::move(kept);
}

}  // namespace renkei::program
