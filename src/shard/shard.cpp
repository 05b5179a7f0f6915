#include "shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/effects.h"

namespace renkei::shard {
namespace {

using program::Argument;
using program::Op;
using program::Program;
using program::ValueId;
using Kind = Layout::Kind;

// References in their order become these.
void replace_references(Argument& argument, const std::vector<ValueId>& by, size_t& next) {
  if (auto* reference = std::get_if<program::Reference>(&argument)) {
    if (reference->value != program::kNoValue) reference->value = by[next++];
  } else if (auto* list = std::get_if<program::List>(&argument)) {
    for (Argument& element : *list) replace_references(element, by, next);
  }
}

std::string_view operation_of(const Step& step) {
  const Kind from = step.from.kind, to = step.to.kind;
  if (from == Kind::whole)
    return to == Kind::copied ? "tp_copy" : to == Kind::split ? "tp_split" : "tp_first";
  if (from == Kind::copied) return to == Kind::split ? "tp_slice" : "tp_once";
  if (from == Kind::partial) return to == Kind::split ? "tp_scatter" : "tp_sum";
  return to == Kind::copied ? "tp_collect" : "tp_gather";
}

class Sharding {
 public:
  Sharding(const Program& given, const ShardOptions& options)
      : options_(options),
        divisible_(make_divisible(given)),
        whole_(divisible_.program),
        there_(whole_.values.size()),
        state_of_(whole_.values.size(), -1) {
    made_.program = whole_;
    made_.program.ops.clear();
    rules_ = {.parts = options.part.parts,
              .counted_dropout = options.counted_dropout,
              .blocks = blocks_of(whole_)};
    for (size_t i = 0; i < whole_.state.size(); ++i) {
      const program::State& state = whole_.state[i];
      state_of_[static_cast<size_t>(state.value)] = static_cast<int>(i);
      made_.state.push_back(
          {.sizes = program::sizes_of(whole_.value(state.value), {}), .part = options.part});
    }
    for (const program::Port& input : whole_.inputs) begin(input.value, kWhole);
  }

  Sharded run() {
    size_t used = 0;
    for (size_t i = 0; i < whole_.ops.size(); ++i) used += add_op(i);
    if (used != options_.choice.size())
      throw Error(ErrorCode::data, "the plan divides operations that the network does not have",
                  "it was made for another network, or by another version: plan again");
    for (program::Port& output : made_.program.outputs)
      output.value = in_layout(output.value, kWhole, nullptr);
    return std::move(made_);
  }

 private:
  struct Form {
    Layout layout;
    ValueId value;
  };

  void begin(ValueId value, const Layout& layout) {
    program::Value& made = made_.program.values[static_cast<size_t>(value)];
    made.sizes = local_sizes(whole_, whole_.value(value).sizes, layout, options_.part);
    there_[static_cast<size_t>(value)] = {{layout, value}};
    if (layout.is_split()) note_batch(value, layout);
  }

  void note_batch(ValueId value, const Layout& layout) {
    made_.divides_batch |= !whole_.value(value).sizes[static_cast<size_t>(layout.dim)].is_number();
  }

  // Returns whether the choice has it.
  bool add_op(size_t number) {
    const Op& op = whole_.ops[number];
    const std::vector<Strategy> list = strategies(whole_, op, rules_);
    const auto chosen = options_.choice.find(key_of(whole_, op));
    const bool found = chosen != options_.choice.end();
    const auto strategy =
        found ? std::ranges::find(list, chosen->second, &Strategy::name) : list.begin();
    if (strategy == list.end() || (found && divisible_.fixed[number]))
      throw Error(ErrorCode::data,
                  fmt::format("{} ({}) can't be divided as the plan says: '{}'", op.target,
                              chosen->first, chosen->second),
                  "plan again");
    Op made = op;
    std::vector<ValueId> arguments;
    const std::vector<ValueId> references = program::references(op);
    for (size_t i = 0; i < references.size(); ++i)
      arguments.push_back(in_layout(references[i], strategy->inputs[i], &op));
    size_t next = 0;
    for (program::NamedArgument& argument : made.arguments)
      replace_references(argument.value, arguments, next);
    if (strategy->localise) strategy->localise(made);
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (op.outputs[i] != program::kNoValue) begin(op.outputs[i], strategy->outputs[i]);
    made_.program.ops.push_back(std::move(made));
    return found;
  }

  ValueId in_layout(ValueId value, const Layout& wanted, const Op* user) {
    std::vector<Form>& forms = there_[static_cast<size_t>(value)];
    if (forms.empty()) begin_state(value, wanted);
    std::vector<Layout> available;
    for (const Form& form : forms) available.push_back(form.layout);
    for (const Step& step : way(available, wanted)) {
      const ValueId from = std::ranges::find(forms, step.from, &Form::layout)->value;
      const ValueId converted = convert(value, from, step, user);
      forms.push_back({step.to, converted});
    }
    return std::ranges::find(forms, wanted, &Form::layout)->value;
  }

  void begin_state(ValueId value, const Layout& wanted) {
    const int place = state_of_[static_cast<size_t>(value)];
    if (place < 0)
      throw Error(ErrorCode::bug,
                  fmt::format("{} is used before it is made", whole_.value(value).name));
    const Pin* pin = find_pin(options_.pins, whole_.state[static_cast<size_t>(place)]);
    const Layout layout = pin ? pin->layout : begin_of(wanted);
    begin(value, layout);
    made_.state[static_cast<size_t>(place)].layout = layout;
  }

  // With a gradient, also for a user that needs none: the next one may.
  ValueId convert(ValueId value, ValueId from, const Step& step, const Op* user) {
    const Layout& cut = step.to.is_split() ? step.to : step.from;
    program::Value made = whole_.value(value);
    made.name = fmt::format("{}_{}", made.name, ++conversions_);
    made.sizes = local_sizes(whole_, made.sizes, step.to, options_.part);
    Op op{.target = fmt::format("renkei.{}.default", operation_of(step)),
          .arguments = {{"input", program::Reference{from}}},
          .outputs = {static_cast<ValueId>(made_.program.values.size())},
          .module = user ? user->module : std::string()};
    if (cut.is_split()) {
      note_batch(value, cut);
      op.arguments.push_back({"dim", int64_t{cut.dim}});
      op.arguments.push_back({"blocks", cut.blocks});
      op.arguments.push_back({"parts", int64_t{options_.part.parts}});
      op.arguments.push_back(
          {"unit", batch_unit(whole_, whole_.value(value).sizes[static_cast<size_t>(cut.dim)])});
    }
    made_.program.values.push_back(std::move(made));
    made_.program.ops.push_back(std::move(op));
    return made_.program.ops.back().outputs.front();
  }

  const ShardOptions& options_;
  Divisible divisible_;
  const Program& whole_;
  RuleOptions rules_;
  std::vector<std::vector<Form>> there_;
  std::vector<int> state_of_;
  Sharded made_;
  int conversions_ = 0;
};

}  // namespace

Sharded shard(const Program& program, const ShardOptions& options) {
  return Sharding(program, options).run();
}

Pins pins_of(const Sharded& sharded) {
  Pins pins;
  for (size_t i = 0; i < sharded.state.size(); ++i)
    pins.push_back({.name = sharded.program.state[i].name, .layout = sharded.state[i].layout});
  return pins;
}

bool is_exchange(const Op& op) {
  return op.target.starts_with("renkei.tp_");
}

}  // namespace renkei::shard
