#include "rewrite/constants.h"

namespace renkei::rewrite {

using program::Argument;
using program::List;
using program::None;
using program::Op;
using program::Reference;
using program::ValueId;

namespace {

// Null: left out, or None.
const Argument* given(const Op& op, std::string_view name) {
  const Argument* argument = find_argument(op, name);
  return argument && std::holds_alternative<None>(*argument) ? nullptr : argument;
}

}  // namespace

ValueId value_of(const Op& op, std::string_view name) {
  const Argument* argument = given(op, name);
  const auto* reference = argument ? std::get_if<Reference>(argument) : nullptr;
  return reference ? reference->value : program::kNoValue;
}

bool is_absent(const Op& op, std::string_view name) {
  return given(op, name) == nullptr;
}

std::optional<int64_t> integer_of(const Op& op, std::string_view name,
                                  std::optional<int64_t> fallback) {
  const Argument* argument = given(op, name);
  if (!argument) return fallback;
  if (const auto* number = std::get_if<int64_t>(argument)) return *number;
  return {};
}

std::optional<double> real_of(const Op& op, std::string_view name, std::optional<double> fallback) {
  const Argument* argument = given(op, name);
  if (!argument) return fallback;
  if (const auto* number = std::get_if<double>(argument)) return *number;
  if (const auto* number = std::get_if<int64_t>(argument)) return static_cast<double>(*number);
  return {};
}

std::optional<bool> boolean_of(const Op& op, std::string_view name, std::optional<bool> fallback) {
  const Argument* argument = given(op, name);
  if (!argument) return fallback;
  if (const auto* flag = std::get_if<bool>(argument)) return *flag;
  return {};
}

std::optional<std::vector<int64_t>> integers_of(const Op& op, std::string_view name) {
  const Argument* argument = given(op, name);
  const auto* list = argument ? std::get_if<List>(argument) : nullptr;
  if (!list) return {};
  std::vector<int64_t> numbers;
  for (const Argument& element : *list) {
    const auto* number = std::get_if<int64_t>(&element);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<Pair> pair_of(const Op& op, std::string_view name, std::optional<Pair> fallback) {
  const Argument* argument = given(op, name);
  if (!argument) return fallback;
  if (const auto* number = std::get_if<int64_t>(argument)) return Pair{*number, *number};
  const auto numbers = integers_of(op, name);
  if (!numbers || numbers->size() > 2) return {};
  if (numbers->empty()) return fallback;
  return Pair{numbers->front(), numbers->back()};
}

std::optional<std::vector<ValueId>> values_of(const Op& op, std::string_view name) {
  const Argument* argument = given(op, name);
  const auto* list = argument ? std::get_if<List>(argument) : nullptr;
  if (!list) return {};
  std::vector<ValueId> values;
  for (const Argument& element : *list) {
    const auto* reference = std::get_if<Reference>(&element);
    if (!reference) return {};
    values.push_back(reference->value);
  }
  return values;
}

Argument integers(const std::vector<int64_t>& numbers) {
  List list;
  for (const int64_t number : numbers) list.emplace_back(number);
  return list;
}

Argument optional_value(ValueId value) {
  if (value == program::kNoValue) return None{};
  return Reference{value};
}

}  // namespace renkei::rewrite
