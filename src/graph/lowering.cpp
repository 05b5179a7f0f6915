#include "graph/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "graph/grouping.h"
#include "graph/known_sizes.h"
#include "graph/safe_to_cut.h"
#include "graph/uses.h"
#include "program/work.h"

namespace renkei::graph {
namespace {

using program::Program;
using program::ValueId;

std::vector<bool> which_are_known(const Lowered& lowered) {
  std::vector<bool> known(lowered.program.values.size());
  for (const KnownSize& size : lowered.sizes) known[static_cast<size_t>(size.value)] = true;
  return known;
}

// "conv2d" of "aten.conv2d.default".
std::string kind_of(const program::Op& op) {
  const size_t begin = op.target.find('.') + 1;  // 0, if there is none
  return op.target.substr(begin, op.target.find('.', begin) - begin);
}

class Lowering {
 public:
  Lowering(const Program& program, int64_t samples) {
    SafeToCut safe = make_safe_to_cut(program);
    const auto sizes = known_sizes(safe.program);
    std::vector<bool> known(sizes.size());
    for (size_t v = 0; v < sizes.size(); ++v) {
      known[v] = sizes[v].has_value();
      if (known[v]) lowered_.sizes.push_back({static_cast<ValueId>(v), *sizes[v]});
    }
    Grouping grouping = group_ops(safe, known);
    lowered_.program = std::move(safe.program);
    lowered_.ops = std::move(grouping.groups);
    lowered_.common = std::move(grouping.common);
    lowered_.linked = std::move(grouping.linked);
    lowered_.graph.name = program.name;
    lowered_.graph.batch = samples;
    lowered_.graph.estimated = true;
    symbols_ = with_batch(lowered_.program, samples);
    gradient_ = values_with_gradient(lowered_.program);
    value_of_.assign(lowered_.program.values.size(), -1);
  }

  Lowered run() {
    add_parameters();
    find_uses();
    for (const program::Port& input : lowered_.program.inputs)
      if (crossing_[static_cast<size_t>(input.value)] &&
          value_of_[static_cast<size_t>(input.value)] < 0)
        add_input(input);
    for (size_t op = 0; op < lowered_.ops.size(); ++op) add_outputs(lowered_.ops[op]);
    for (size_t op = 0; op < lowered_.ops.size(); ++op) add_op(op);
    add_results();
    sort();
    return std::move(lowered_);
  }

 private:
  void add_parameters() {
    for (const program::State& state : lowered_.program.state)
      lowered_.graph.parameters.push_back(
          {.id = fmt::format("p{}", lowered_.graph.parameters.size()),
           .name = state.name,
           .bytes = bytes_of(lowered_.program.value(state.value), symbols_),
           .trainable = state.kind == program::StateKind::parameter && state.trainable});
  }

  // What passes from op to op.
  void find_uses() {
    const std::vector<bool> known = which_are_known(lowered_);
    const Uses uses(lowered_.program, lowered_.common, lowered_.linked, known);
    std::vector<int> group_of(lowered_.program.ops.size(), -1);
    for (size_t group = 0; group < lowered_.ops.size(); ++group)
      for (const int op : lowered_.ops[group])
        group_of[static_cast<size_t>(op)] = static_cast<int>(group);
    crossing_.resize(lowered_.program.values.size());
    for (size_t group = 0; group < lowered_.ops.size(); ++group) {
      used_.push_back(uses.of(lowered_.ops[group]));
      std::erase_if(used_.back().values, [&](ValueId value) {
        const int maker = uses.maker(value);
        return maker >= 0 && group_of[static_cast<size_t>(maker)] == static_cast<int>(group);
      });
      for (const ValueId value : used_.back().values) crossing_[static_cast<size_t>(value)] = true;
    }
    for (const program::Port& output : lowered_.program.outputs)
      crossing_[static_cast<size_t>(output.value)] = true;
  }

  void add_input(const program::Port& input) {
    const ValueIndex index = add_value(input.value, "the input " + input.name);
    Value& value = lowered_.graph.values[static_cast<size_t>(index)];
    value.name = input.name;
    value.gradient = false;
    lowered_.graph.inputs.push_back(index);
  }

  void add_outputs(const std::vector<int>& group) {
    outputs_.emplace_back();
    for (const int place : group) {
      const program::Op& op = lowered_.program.ops[static_cast<size_t>(place)];
      for (const ValueId output : op.outputs)
        if (output != program::kNoValue && crossing_[static_cast<size_t>(output)])
          outputs_.back().push_back(add_value(output, op.target));
    }
  }

  ValueIndex add_value(ValueId id, const std::string& maker) {
    const program::Value& value = lowered_.program.value(id);
    if (value.kind != program::ValueKind::tensor)
      throw Error(ErrorCode::data,
                  fmt::format("{} can't be cut: {} hands on a number ({}), and only tensors pass "
                              "between ops",
                              lowered_.program.name, maker, value.name),
                  "train it with --plan data, which runs it as it is");
    const auto index = static_cast<ValueIndex>(lowered_.graph.values.size());
    const int dimension = batch_dimension(lowered_.program, value);
    value_of_[static_cast<size_t>(id)] = index;
    lowered_.values.push_back(id);
    lowered_.batch_dimension.push_back(dimension);
    lowered_.graph.values.push_back({.id = fmt::format("v{}", index),
                                     .bytes = bytes_of(value, symbols_),
                                     .batch = dimension >= 0,
                                     .gradient = gradient_[static_cast<size_t>(id)],
                                     .name = {},
                                     .shape = sizes_of(value, symbols_),
                                     .dtype = std::string(name_of(value.dtype))});
    return index;
  }

  void add_op(size_t group) {
    graph::Op made{
        .id = fmt::format("{}", group), .name = {}, .kind = {}, .outputs = outputs_[group]};
    for (const ValueId value : used_[group].values)
      made.inputs.push_back(value_of_[static_cast<size_t>(value)]);
    std::ranges::sort(made.inputs);
    made.parameters = used_[group].states;
    double most = -1;  // the work of the op that gives the kind
    const program::Op* chief = nullptr;
    for (const int place : lowered_.ops[group]) {
      const program::Op& op = lowered_.program.ops[static_cast<size_t>(place)];
      const program::Work work = work_of(lowered_.program, op, symbols_);
      made.flops += work.flops;
      made.traffic_bytes += work.traffic_bytes;
      made.saved_bytes += work.made_bytes;
      const auto add = [](Exchange& to, const program::Work::Exchange& of) {
        to.halves += of.halves;
        to.bytes += of.bytes;
      };
      add(made.exchange_forward, work.exchange_forward);
      add(made.exchange_backward, work.exchange_backward);
      if (work.flops >= most) {
        most = work.flops;
        chief = &op;
      }
    }
    made.deferred_bytes = made.saved_bytes;
    made.traffic_bytes = std::max(made.traffic_bytes, 1.0);  // a view costs a call
    made.kind = kind_of(*chief);
    made.name = name_of_op(made, *chief);
    lowered_.graph.ops.push_back(std::move(made));
  }

  // An op is called after the layer whose parameters it uses, or that it belongs to.
  std::string name_of_op(const graph::Op& op, const program::Op& chief) const {
    if (!op.parameters.empty()) {
      const std::string& name = lowered_.program.state[static_cast<size_t>(op.parameters[0])].name;
      return name.substr(0, name.rfind('.'));  // all, if there is none
    }
    return chief.module.empty() ? op.kind : chief.module;
  }

  void add_results() {
    for (const program::Port& output : lowered_.program.outputs) {
      const ValueIndex value = value_of_[static_cast<size_t>(output.value)];
      if (value < 0)
        throw Error(ErrorCode::data,
                    fmt::format("the result '{}' of {} does not depend on its input", output.name,
                                lowered_.program.name));
      lowered_.graph.outputs.push_back(value);
      std::string& name = lowered_.graph.values[static_cast<size_t>(value)].name;
      if (name.empty()) name = output.name;
    }
  }

  // Groups need not be in topological order: their ops are, one by one.
  void sort() {
    check_and_sort(lowered_.graph, lowered_.program.name);
    std::vector<std::vector<int>> sorted;
    for (graph::Op& op : lowered_.graph.ops) {
      sorted.push_back(std::move(lowered_.ops[std::stoul(op.id)]));
      op.id = fmt::format("{}", sorted.size() - 1);
    }
    lowered_.ops = std::move(sorted);
  }

  Lowered lowered_;
  program::SymbolValues symbols_;
  std::vector<bool> gradient_, crossing_;         // of a value of the program
  std::vector<ValueIndex> value_of_;              // of a value of the program; -1: none
  std::vector<Used> used_;                        // of each group
  std::vector<std::vector<ValueIndex>> outputs_;  // of each group
};

}  // namespace

int batch_dimension(const program::Program& program, const program::Value& value) {
  const std::string_view batch = program::batch_symbol(program);
  const program::SymbolValues once = with_batch(program, 2), twice = with_batch(program, 4);
  for (size_t d = 0; d < value.sizes.size(); ++d)
    if (value.sizes[d].mentions(batch) &&
        value.sizes[d].value(twice) == 2 * value.sizes[d].value(once))
      return static_cast<int>(d);
  return -1;
}

Lowered lower(const Program& program, int64_t samples) {
  return Lowering(program, samples).run();
}

Part part_of(const Lowered& lowered, const std::vector<OpIndex>& ops) {
  const std::vector<bool> known = which_are_known(lowered);
  const Uses uses(lowered.program, lowered.common, lowered.linked, known);
  Part part;
  for (const OpIndex op : ops) {
    const auto& places = lowered.ops[static_cast<size_t>(op)];
    part.ops.insert(part.ops.end(), places.begin(), places.end());
  }
  std::vector<bool> mine(lowered.program.ops.size());
  for (const int op : part.ops) mine[static_cast<size_t>(op)] = true;
  Used used = uses.of(part.ops);
  part.ops.insert(part.ops.end(), used.common.begin(), used.common.end());
  std::ranges::sort(part.ops);
  part.parameters = std::move(used.states);
  const std::set<ValueId> needed(used.values.begin(), used.values.end());
  for (size_t i = 0; i < lowered.values.size(); ++i) {
    const int maker = uses.maker(lowered.values[i]);
    if (needed.contains(lowered.values[i]) && (maker < 0 || !mine[static_cast<size_t>(maker)]))
      part.inputs.push_back(static_cast<ValueIndex>(i));
  }
  return part;
}

}  // namespace renkei::graph
