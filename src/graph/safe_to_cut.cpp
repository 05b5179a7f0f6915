#include "graph/safe_to_cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "graph/memory.h"
#include "graph/union_find.h"
#include "program/effects.h"

namespace renkei::graph {
namespace {

using program::DType;
using program::Program;
using program::ValueId;

// "relu" of "aten.relu_.default", if that operation has a form without the underscore that takes
// the same arguments and gives the same numbers.
std::string_view name_without_underscore(std::string_view target) {
  static const std::set<std::string_view> known{"abs",
                                                "add",
                                                "addcdiv",
                                                "addcmul",
                                                "addmm",
                                                "baddbmm",
                                                "ceil",
                                                "celu",
                                                "clamp",
                                                "clamp_max",
                                                "clamp_min",
                                                "copy",
                                                "cos",
                                                "cumsum",
                                                "div",
                                                "dropout",
                                                "elu",
                                                "erf",
                                                "exp",
                                                "fill",
                                                "floor",
                                                "feature_dropout",
                                                "alpha_dropout",
                                                "hardsigmoid",
                                                "hardswish",
                                                "hardtanh",
                                                "index_add",
                                                "index_copy",
                                                "index_fill",
                                                "index_put",
                                                "leaky_relu",
                                                "lerp",
                                                "log",
                                                "masked_fill",
                                                "masked_scatter",
                                                "mish",
                                                "mul",
                                                "neg",
                                                "pow",
                                                "reciprocal",
                                                "relu",
                                                "relu6",
                                                "renorm",
                                                "round",
                                                "rrelu",
                                                "rsqrt",
                                                "scatter",
                                                "scatter_add",
                                                "selu",
                                                "sigmoid",
                                                "sign",
                                                "silu",
                                                "sin",
                                                "sqrt",
                                                "square",
                                                "squeeze",
                                                "sub",
                                                "tanh",
                                                "threshold",
                                                "transpose",
                                                "tril",
                                                "triu",
                                                "unsqueeze",
                                                "zero"};
  constexpr std::string_view kAten = "aten.";
  if (!target.starts_with(kAten)) return {};
  target.remove_prefix(kAten.size());
  target = target.substr(0, target.find('.'));
  if (!target.ends_with('_')) return {};
  target.remove_suffix(1);
  return known.contains(target) ? target : std::string_view{};
}

// Where types meet, the larger one wins, except in place: there the tensor keeps its own.
bool keeps_type(const Program& program, const program::Op& op, const program::Value& changed) {
  const auto rank = [](DType dtype) {
    if (dtype == DType::boolean) return 0;
    if (dtype == DType::c64 || dtype == DType::c128) return 3;
    return is_floating(dtype) ? 2 : 1;
  };
  return std::ranges::all_of(references(op), [&](ValueId id) {
    const program::Value& value = program.value(id);
    return value.kind != program::ValueKind::tensor || value.dtype == changed.dtype ||
           rank(value.dtype) < rank(changed.dtype);
  });
}

bool can_make_new_tensor(const Program& program, const program::Op& op,
                         const std::vector<bool>& gradient) {
  if (op.arguments.empty() || op.outputs.size() > 1) return false;
  const auto* changed = std::get_if<program::Reference>(&op.arguments[0].value);
  if (!changed || name_without_underscore(op.target).empty()) return false;
  // Under no_grad the tensor keeps its history; a new one would have none.
  if (op.no_grad && gradient[static_cast<size_t>(changed->value)]) return false;
  return keeps_type(program, op, program.value(changed->value));
}

void make_new_tensors(Program& program) {
  const Memory memory(program);
  const std::vector<bool> gradient = values_with_gradient(program);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    program::Op& op = program.ops[i];
    const auto place = static_cast<int>(i);
    const auto& written = memory.written_classes(place);
    if (written.size() != 1) continue;
    const auto& memory_class = memory.classes()[static_cast<size_t>(written[0])];
    if (memory_class.owner == Memory::Owner::state || memory.is_seen_after(place, written[0]) ||
        !can_make_new_tensor(program, op, gradient))
      continue;
    const size_t dot = op.target.find('.', op.target.find('.') + 1);
    op.target.erase(std::min(dot, op.target.size()) - 1, 1);
  }
}

std::vector<std::vector<int>> who_stays_together(const Program& program) {
  const Memory memory(program);
  UnionFind sets(program.ops.size());
  std::vector<int> first(memory.classes().size(), -1);
  const auto touch = [&](ValueId value, int op) {
    if (value == program::kNoValue) return;
    const int number = memory.class_of(value);
    const auto& c = memory.classes()[static_cast<size_t>(number)];
    if (c.writers.empty() || (c.owner == Memory::Owner::op && op > c.writers.back())) return;
    int& begin = first[static_cast<size_t>(number)];
    if (begin < 0) begin = op;
    sets.join(begin, op);
  };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    for (const ValueId value : references(program.ops[i])) touch(value, static_cast<int>(i));
    for (const ValueId value : program.ops[i].outputs) touch(value, static_cast<int>(i));
  }
  std::map<int, std::vector<int>> by_name;
  for (size_t i = 0; i < program.ops.size(); ++i)
    by_name[sets.find(static_cast<int>(i))].push_back(static_cast<int>(i));
  std::vector<std::vector<int>> together;
  for (auto& [name, ops] : by_name)
    if (ops.size() > 1) together.push_back(std::move(ops));
  return together;
}

}  // namespace

std::vector<bool> values_with_gradient(const Program& program) {
  const Memory memory(program);
  std::vector<bool> gradient(program.values.size());
  for (const program::State& state : program.state)
    if (state.kind == program::StateKind::parameter && state.trainable)
      gradient[static_cast<size_t>(state.value)] = true;
  const auto has = [&](ValueId value) { return gradient[static_cast<size_t>(value)]; };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const program::Op& op = program.ops[i];
    const auto& written = memory.written_classes(static_cast<int>(i));
    if ((!op.no_grad && !differentiable(op)) || std::ranges::none_of(references(op), has)) continue;
    const auto mark = [&](ValueId value) {
      if (is_floating(program.value(value).dtype)) gradient[static_cast<size_t>(value)] = true;
    };
    for (const ValueId output : op.outputs) {
      // What is changed in place under no_grad is still the tensor that it was.
      const auto is_same_tensor = [&](ValueId value) {
        return has(value) && memory.class_of(value) == memory.class_of(output) &&
               std::ranges::count(written, memory.class_of(output)) > 0;
      };
      if (output != program::kNoValue &&
          (!op.no_grad || std::ranges::any_of(references(op), is_same_tensor)))
        mark(output);
    }
    if (op.no_grad) continue;
    for (const int number : written) {
      const auto& c = memory.classes()[static_cast<size_t>(number)];
      if (c.owner == Memory::Owner::state) continue;
      for (const ValueId member : c.members)
        if (memory.maker(member) <= static_cast<int>(i)) mark(member);
    }
  }
  return gradient;
}

SafeToCut make_safe_to_cut(Program program) {
  make_new_tensors(program);
  std::vector<std::vector<int>> together = who_stays_together(program);
  return {.program = std::move(program), .together = std::move(together)};
}

}  // namespace renkei::graph
