#include "rewrite/editor.h"

#include <algorithm>
#include <set>

#include "program/effects.h"

namespace renkei::rewrite {

using program::kNoValue;
using program::Reference;

namespace {

size_t at(int place) {
  return static_cast<size_t>(place);
}

void replace_in(program::Argument& argument, ValueId from, ValueId to) {
  if (auto* reference = std::get_if<Reference>(&argument); reference && reference->value == from)
    reference->value = to;
  if (auto* list = std::get_if<program::List>(&argument))
    for (auto& element : *list) replace_in(element, from, to);
}

// The arguments whose memory its results may share.
std::vector<ValueId> shared_arguments(const Op& op) {
  const std::string name = alias_of(op);
  if (name.empty()) return {};
  const program::Argument* argument = find_argument(op, name);
  if (!argument) return {};
  return program::references(
      {.target = op.target, .arguments = {{name, *argument}}, .outputs = {}});
}

}  // namespace

Editor::Editor(Program program, bool training, bool trained_inputs)
    : program_(std::move(program)), training_(training), trained_inputs_(trained_inputs) {}

const Editor::Facts& Editor::facts() const {
  if (known_) return facts_;
  const size_t count = program_.values.size();
  facts_ = {.producer = std::vector<int>(count, -1),
            .users = std::vector<std::vector<int>>(count),
            .mentions = std::vector<int>(count),
            .output = std::vector<bool>(count),
            .state = std::vector<bool>(count),
            .gradient = std::vector<bool>(count),
            .root = std::vector<ValueId>(count),
            .written = std::vector<bool>(count)};
  Facts& f = facts_;
  for (size_t value = 0; value < count; ++value) f.root[value] = static_cast<ValueId>(value);
  for (const auto& state : program_.state) {
    f.state[at(state.value)] = true;
    f.gradient[at(state.value)] =
        training_ && state.kind == program::StateKind::parameter && state.trainable;
  }
  for (const auto& input : program_.inputs)
    f.gradient[at(input.value)] =
        training_ && trained_inputs_ && is_floating(value(input.value).dtype);
  for (int place = 0; place < places(); ++place) add_facts(place);
  for (const auto& output : program_.outputs) {
    f.output[at(output.value)] = true;
    ++f.mentions[at(output.value)];
  }
  known_ = true;
  return facts_;
}

void Editor::join_memory(ValueId a, ValueId b) const {
  const ValueId from = facts_.root[at(a)], to = facts_.root[at(b)];
  if (from == a)
    facts_.root[at(a)] = to;
  else  // it shares that of several
    std::replace(facts_.root.begin(), facts_.root.end(), from, to);
}

void Editor::add_facts(int place) const {
  Facts& f = facts_;
  bool gradient = false;
  for (const ValueId id : references(op(place))) {
    ++f.mentions[at(id)];
    gradient = gradient || f.gradient[at(id)];
    if (f.users[at(id)].empty() || f.users[at(id)].back() != place)
      f.users[at(id)].push_back(place);
  }
  for (const ValueId id : op(place).outputs) {
    if (id == kNoValue) continue;
    f.producer[at(id)] = place;
    f.gradient[at(id)] = gradient && differentiable(op(place)) && is_floating(value(id).dtype);
  }
  for (const ValueId base : shared_arguments(op(place))) {
    for (const ValueId result : op(place).outputs)
      if (result != kNoValue) join_memory(result, base);
  }
  for (const ValueId id : written_values(op(place))) {
    f.written[at(f.root[at(id)])] = true;
    f.gradient[at(id)] = f.gradient[at(id)] || gradient;
  }
}

int Editor::producer(ValueId id) const {
  return facts().producer[at(id)];
}

std::span<const int> Editor::users(ValueId id) const {
  return facts().users[at(id)];
}

bool Editor::is_output(ValueId id) const {
  return facts().output[at(id)];
}

bool Editor::is_state(ValueId id) const {
  return facts().state[at(id)];
}

int Editor::only_user(ValueId id) const {
  return facts().mentions[at(id)] == 1 && !is_output(id) ? users(id).front() : -1;
}

bool Editor::is_written(ValueId id) const {
  return facts().written[at(facts().root[at(id)])];
}

std::vector<ValueId> Editor::sharing_memory_with(ValueId id) const {
  std::vector<ValueId> others;
  const auto& root = facts().root;
  for (size_t other = 0; other < root.size(); ++other)
    if (root[other] == root[at(id)] && other != at(id))
      others.push_back(static_cast<ValueId>(other));
  return others;
}

bool Editor::needs_gradient(ValueId id) const {
  return facts().gradient[at(id)];
}

bool Editor::can_move_down(int from, int to) const {
  const auto roots = [&](const std::vector<ValueId>& values) {
    std::set<ValueId> found;
    for (const ValueId id : values) found.insert(facts().root[at(id)]);
    return found;
  };
  const auto touched = roots(references(op(from))), written = roots(written_values(op(from)));
  const auto meets = [](const std::set<ValueId>& a, const std::set<ValueId>& b) {
    return std::any_of(a.begin(), a.end(), [&](ValueId id) { return b.contains(id); });
  };
  for (int place = from + 1; place < to; ++place) {
    if (is_empty(place)) continue;
    if (meets(roots(written_values(op(place))), touched)) return false;
    if (meets(roots(references(op(place))), written)) return false;
    if (draws(op(from)) && draws(op(place))) return false;
  }
  return true;
}

void Editor::replace(int place, Op op) {
  program_.ops[at(place)] = std::move(op);
  changed();
}

void Editor::set(int place, std::string_view name, program::Argument value) {
  set_argument(program_.ops[at(place)], name, std::move(value));
  changed();
}

void Editor::erase(int place) {
  program_.ops[at(place)] = {};
  changed();
}

void Editor::insert_before(int place, Op op) {
  program_.ops.insert(program_.ops.begin() + place, std::move(op));
  changed();
}

void Editor::set_ops(std::vector<Op> ops) {
  program_.ops = std::move(ops);
  changed();
}

void Editor::replace_uses(ValueId from, ValueId to, int after) {
  for (int place = after + 1; place < places(); ++place)
    for (auto& [name, argument] : program_.ops[at(place)].arguments) replace_in(argument, from, to);
  for (auto& output : program_.outputs)
    if (output.value == from) output.value = to;
  changed();
}

void Editor::set_output(size_t port, ValueId id) {
  program_.outputs[port].value = id;
  changed();
}

void Editor::set_sizes(ValueId id, std::vector<program::Size> sizes) {
  program_.values[at(id)].sizes = std::move(sizes);
}

void Editor::set_dtype(ValueId id, program::DType dtype) {
  program_.values[at(id)].dtype = dtype;
}

ValueId Editor::add_value(Value value) {
  program_.values.push_back(std::move(value));
  changed();
  return static_cast<ValueId>(program_.values.size()) - 1;
}

std::string Editor::where(int place) const {
  const Op& it = op(place);
  if (!it.module.empty()) return it.module;
  for (const ValueId id : it.outputs)
    if (id != kNoValue) return value(id).name;
  return it.target;
}

Program Editor::take() {
  std::erase_if(program_.ops, [](const Op& op) { return op.target.empty(); });
  drop_unmentioned_values();
  check(program_, "the rewritten program");
  return std::move(program_);
}

void Editor::drop_unmentioned_values() {
  constexpr ValueId kDropped = -2;
  std::vector<ValueId> now(program_.values.size(), kDropped);
  const auto keep = [&](ValueId id) {
    if (id != kNoValue) now[at(id)] = 0;
  };
  for (const auto& state : program_.state) keep(state.value);
  for (const auto& port : program_.inputs) keep(port.value);
  for (const auto& port : program_.outputs) keep(port.value);
  for (const Op& op : program_.ops) {
    for (const ValueId id : references(op)) keep(id);
    for (const ValueId id : op.outputs) keep(id);
  }
  std::vector<Value> values;
  for (size_t id = 0; id < now.size(); ++id) {
    if (now[id] == kDropped) continue;
    now[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(program_.values[id]));
  }
  program_.values = std::move(values);
  renumber(now);
}

namespace {

void renumber_in(program::Argument& argument, const std::vector<ValueId>& now) {
  if (auto* reference = std::get_if<Reference>(&argument))
    reference->value = now[at(reference->value)];
  if (auto* list = std::get_if<program::List>(&argument))
    for (auto& element : *list) renumber_in(element, now);
}

}  // namespace

void Editor::renumber(const std::vector<ValueId>& now) {
  for (auto& state : program_.state) state.value = now[at(state.value)];
  for (auto& port : program_.inputs) port.value = now[at(port.value)];
  for (auto& port : program_.outputs) port.value = now[at(port.value)];
  for (Op& op : program_.ops) {
    for (auto& [name, argument] : op.arguments) renumber_in(argument, now);
    for (ValueId& id : op.outputs)
      if (id != kNoValue) id = now[at(id)];
  }
  changed();
}

}  // namespace renkei::rewrite
