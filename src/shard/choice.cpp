#include "shard/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "graph/safe_to_cut.h"
#include "program/effects.h"

namespace renkei::shard {

using program::Op;
using program::Program;
using Kind = Layout::Kind;

std::string key_of(const Program& program, const Op& op) {
  for (const program::ValueId output : op.outputs)
    if (output != program::kNoValue) return program.value(output).name;
  return {};
}

namespace {

bool fits(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at)
    if (fits(rest, name.substr(at))) return true;
  return false;
}

Pin parse_pin(const std::string& text) {
  const auto refuse = [&] {
    throw Error(ErrorCode::usage, fmt::format("'{}' says nothing about parameters", text),
                "write NAME:DIMENSION=model to split a dimension, or NAME=none to leave it whole; "
                "names may have * in them: \"mlp.*.weight:1=model\"");
  };
  const size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0) refuse();
  std::string name = text.substr(0, equals);
  const std::string to = text.substr(equals + 1);
  if (to == "none") return {.name = name, .layout = kWhole};
  const size_t colon = name.rfind(':');
  if (to != "model" || colon == name.npos || colon == 0 || colon + 2 != name.size() ||
      name[colon + 1] < '0' || name[colon + 1] > '9')
    refuse();
  const int dim = name[colon + 1] - '0';
  return {.name = name.substr(0, colon), .layout = split(dim)};
}

}  // namespace

const Pin* find_pin(const Pins& pins, const program::State& state) {
  for (const Pin& pin : pins) {
    if (fits(pin.name, state.name)) return &pin;
    for (const std::string& alias : state.aliases)
      if (fits(pin.name, alias)) return &pin;
  }
  return nullptr;
}

Pins parse_pins(const std::string& text) {
  Pins pins;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string one = text.substr(begin, end - begin);
    const size_t first = one.find_first_not_of(' ');
    if (first != one.npos)
      pins.push_back(parse_pin(one.substr(first, one.find_last_not_of(' ') + 1 - first)));
    begin = end + 1;
  }
  return pins;
}

Divisible make_divisible(const Program& program) {
  graph::SafeToCut safe = graph::make_safe_to_cut(program);
  Divisible divisible{.program = std::move(safe.program), .fixed = {}};
  divisible.fixed.resize(divisible.program.ops.size());
  for (const auto& together : safe.together)
    for (const int op : together) divisible.fixed[static_cast<size_t>(op)] = true;
  // The size of a value that may be split is read from an input of the program that has the same.
  Program& made = divisible.program;
  for (Op& op : made.ops) {
    if (!op.target.starts_with("aten.sym_size")) continue;
    const program::Argument* self = find_argument(op, "self");
    const program::Argument* dim = find_argument(op, "dim");
    const auto* value = self ? std::get_if<program::Reference>(self) : nullptr;
    const auto* number = dim ? std::get_if<int64_t>(dim) : nullptr;
    if (!value || !number) continue;
    const std::vector<program::Size>& sizes = made.value(value->value).sizes;
    const auto at = static_cast<size_t>(*number < 0 ? *number + std::ssize(sizes) : *number);
    bool found = false;
    for (const program::Port& input : made.inputs) {
      const std::vector<program::Size>& of_input = made.value(input.value).sizes;
      const auto same = std::ranges::find(of_input, sizes[at]);
      if (found || same == of_input.end() || sizes[at].is_number()) continue;
      const auto place = static_cast<int64_t>(same - of_input.begin());
      set_argument(op, "self", program::Reference{input.value});
      set_argument(op, "dim", place);
      found = true;
    }
  }
  return divisible;
}

Halves halves_of(const Step& step) {
  const Kind from = step.from.kind, to = step.to.kind;
  if (from == Kind::whole && to == Kind::copied) return {0, 2};
  if (from == Kind::whole && to == Kind::split) return {0, 1};
  if (from == Kind::split && to == Kind::whole) return {1, 0};
  if (from == Kind::split && to == Kind::copied) return {1, 1};
  if (from == Kind::partial && to == Kind::whole) return {2, 0};
  if (from == Kind::partial && to == Kind::split) return {1, 1};
  return {};  // each rank has what it needs
}

namespace {

bool is_direct(const Layout& from, const Layout& to) {
  switch (from.kind) {
    case Kind::whole:
      return true;
    case Kind::copied:
      return to.kind == Kind::whole || to.kind == Kind::split;
    case Kind::split:
      return to.kind == Kind::whole || to.kind == Kind::copied;
    case Kind::partial:
      return to.kind == Kind::whole || to.kind == Kind::split;
  }
  return false;
}

int traffic(const std::vector<Step>& steps) {
  int sum = 0;
  for (const Step& step : steps) sum += halves_of(step).forward + halves_of(step).backward;
  return sum;
}

}  // namespace

std::vector<Step> way(std::span<const Layout> available, const Layout& wanted) {
  if (std::ranges::count(available, wanted) > 0) return {};
  std::vector<Step> best;
  const auto consider = [&](std::vector<Step> steps) {
    if (best.empty() || traffic(steps) < traffic(best)) best = std::move(steps);
  };
  for (const Layout& from : available) {
    if (is_direct(from, wanted)) consider({{from, wanted}});
    if (from != kWhole && wanted != kWhole) consider({{from, kWhole}, {kWhole, wanted}});
  }
  return best;
}

Layout begin_of(const Layout& first_use) {
  return first_use.kind == Kind::partial ? kWhole : first_use;
}

}  // namespace renkei::shard
