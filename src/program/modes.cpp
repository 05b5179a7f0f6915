#include "program/modes.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "base/error.h"
#include "program/effects.h"
#include "program/memory.h"

namespace renkei::program {
namespace {

bool is_given(const Op& op, std::string_view name) {
  const Argument* argument = find_argument(op, name);
  return argument && std::holds_alternative<Reference>(*argument);
}

bool has_argument_of(const Op& op, std::string_view name) {
  return find_argument(op, name) != nullptr;
}

bool counts_batches(const Program& program, const Op& op) {
  if (parts_of(op.target).name != "add_" || !is_given(op, "self")) return false;
  const ValueId self = std::get<Reference>(*find_argument(op, "self")).value;
  for (const State& state : program.state)
    if (state.value == self && state.kind == StateKind::buffer &&
        state.name.ends_with("num_batches_tracked"))
      return true;
  return false;
}

void use_running_statistics(Op& op, std::string_view setting) {
  if (!is_given(op, "running_mean")) return;  // without them it has those of the batch, always
  set_argument(op, setting, false);
  // A momentum that was computed from the number of batches is used no more.
  if (is_given(op, "momentum")) set_argument(op, "momentum", 0.0);
}

// What is left of an operation: itself with other settings, or (true) nothing but its argument.
bool becomes_its_argument(const Program& program, Op& op) {
  static const std::set<std::string_view> dropouts{"dropout", "feature_dropout", "alpha_dropout",
                                                   "feature_alpha_dropout"};
  if (counts_batches(program, op)) return true;
  const Target target = parts_of(op.target);
  if (target.library != "aten") return false;
  std::string_view name = target.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  if (dropouts.contains(name)) return true;
  if (is_batch_norm(name)) use_running_statistics(op, "training");
  if (name == "instance_norm") use_running_statistics(op, "use_input_stats");
  if (name == "_batch_norm_with_update") op.target = "aten._batch_norm_no_update.default";
  if (name == "native_dropout") set_argument(op, "train", false);
  if (name.starts_with("rrelu") && has_argument_of(op, "training"))
    set_argument(op, "training", false);
  if (has_argument_of(op, "dropout_p")) set_argument(op, "dropout_p", 0.0);
  if (has_argument_of(op, "dropout") && has_argument_of(op, "train"))  // lstm, gru …
    set_argument(op, "train", false);
  return false;
}

void rename(Argument& argument, const std::vector<ValueId>& now) {
  if (auto* reference = std::get_if<Reference>(&argument))
    reference->value = now[static_cast<size_t>(reference->value)];
  if (auto* list = std::get_if<List>(&argument))
    for (Argument& item : *list) rename(item, now);
}

[[noreturn]] void refuse_mode(const Program& program, const Op& op, const std::string& what) {
  std::string where;
  if (!op.module.empty()) where += fmt::format(" in the layer {}", op.module);
  if (!op.source.empty()) where += fmt::format(" ({})", op.source);
  throw Error(ErrorCode::data,
              fmt::format("the program {} can't be switched to evaluation: {}{} {}", program.name,
                          op.target, where, what),
              "save an evaluation program too: export the model once more after model.eval()");
}

void refuse_what_is_unclear(const Program& program) {
  const auto changed = changed_state(program);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (draws(op))
      refuse_mode(program, op, "draws random numbers, and would perhaps not when evaluating");
    if (!changed[i].empty())
      refuse_mode(program, op,
                  fmt::format("changes {}, and would perhaps not when evaluating",
                              changed[i].front()->name));
  }
}

}  // namespace

Program evaluation(const Program& training) {
  Program program = training;
  program.ops.clear();
  std::vector<ValueId> now(training.values.size());  // by which value each is replaced
  std::iota(now.begin(), now.end(), 0);
  for (Op op : training.ops) {
    for (NamedArgument& argument : op.arguments) rename(argument.value, now);
    const std::vector<ValueId> given = references(op);
    if (given.empty() || !becomes_its_argument(training, op)) {
      program.ops.push_back(std::move(op));
      continue;
    }
    for (const ValueId output : op.outputs)
      if (output != kNoValue) now[static_cast<size_t>(output)] = given.front();
  }
  for (Port& output : program.outputs) output.value = now[static_cast<size_t>(output.value)];
  remove_dead_ops(program);
  refuse_what_is_unclear(program);
  return program;
}

}  // namespace renkei::program
