// What an operation is given, read by name, with the schema's default where it is left out.
#pragma once

#include <optional>
#include <utility>

#include "program/program.h"

namespace renkei::rewrite {

using Pair = std::pair<int64_t, int64_t>;

// The value that it is given; kNoValue where it is given none or something else.
program::ValueId value_of(const program::Op& op, std::string_view name);
// Left out, or given as None.
bool is_absent(const program::Op& op, std::string_view name);

// Nothing where it is given something else, such as a value.
std::optional<int64_t> integer_of(const program::Op& op, std::string_view name,
                                  std::optional<int64_t> fallback = {});
std::optional<double> real_of(const program::Op& op, std::string_view name,
                              std::optional<double> fallback = {});
std::optional<bool> boolean_of(const program::Op& op, std::string_view name,
                               std::optional<bool> fallback = {});
std::optional<std::vector<int64_t>> integers_of(const program::Op& op, std::string_view name);
// Of height and width: two numbers, or one for both; an empty list is like one left out.
std::optional<Pair> pair_of(const program::Op& op, std::string_view name,
                            std::optional<Pair> fallback = {});
// The values of a list of values; nothing if there is anything else among them.
std::optional<std::vector<program::ValueId>> values_of(const program::Op& op,
                                                       std::string_view name);

program::Argument integers(const std::vector<int64_t>& numbers);  // as a list
program::Argument optional_value(program::ValueId value);         // None for kNoValue

}  // namespace renkei::rewrite
