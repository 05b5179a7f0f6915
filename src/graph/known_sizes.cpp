#include "graph/known_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"

namespace renkei::graph {
namespace {

using program::Program;
using program::Size;

using Sizes = std::vector<std::optional<Size>>;

std::optional<Size> argument_size(const program::Op& op, size_t place, const Sizes& known) {
  if (place >= op.arguments.size()) return {};
  const program::Argument& argument = op.arguments[place].value;
  if (const auto* number = std::get_if<int64_t>(&argument)) return Size(*number);
  if (const auto* value = std::get_if<program::Reference>(&argument))
    return known[static_cast<size_t>(value->value)];
  return {};
}

std::optional<Size> size_of_dimension(const Program& program, const program::Op& op) {
  if (op.arguments.size() < 2) return {};
  const auto* tensor = std::get_if<program::Reference>(&op.arguments[0].value);
  const auto* dimension = std::get_if<int64_t>(&op.arguments[1].value);
  if (!tensor || !dimension) return {};
  const auto& sizes = program.value(tensor->value).sizes;
  const auto count = static_cast<int64_t>(sizes.size());
  const int64_t place = *dimension < 0 ? *dimension + count : *dimension;
  if (place < 0 || place >= count) return {};
  return sizes[static_cast<size_t>(place)];
}

std::optional<Size> computed_size(const program::Op& op, const Sizes& known) {
  static const std::map<std::string_view, std::string_view> signs{
      {"operator.add", "+"},       {"operator.sub", "-"}, {"operator.mul", "*"},
      {"operator.floordiv", "//"}, {"operator.mod", "%"}, {"operator.pow", "**"}};
  const auto sign = signs.find(op.target);
  const auto a = argument_size(op, 0, known), b = argument_size(op, 1, known);
  if (op.target == "operator.neg" && a) return Size(-1) * *a;
  if (sign == signs.end() || !a || !b) return {};
  return Size::expression(fmt::format("({}) {} ({})", a->str(), sign->second, b->str()));
}

std::optional<Size> size_of(const Program& program, const program::Op& op, const Sizes& known) {
  if (op.target == "aten.sym_size.int") return size_of_dimension(program, op);
  if (!op.target.starts_with("operator.")) return {};
  const auto& given = program.value(op.outputs[0]).sizes;
  if (given.size() == 1) return given[0];
  try {
    return computed_size(op, known);
  } catch (const Error&) {
    return {};  // too long, say: it is computed like everything else
  }
}

}  // namespace

std::vector<std::optional<Size>> known_sizes(const Program& program) {
  const std::string_view batch = batch_symbol(program);
  const auto is_known_everywhere = [&](const Size& size) {
    return std::ranges::none_of(program.symbols, [&](const program::Symbol& symbol) {
      return symbol.name != batch && size.mentions(symbol.name);
    });
  };
  Sizes known(program.values.size());
  for (const program::Op& op : program.ops) {
    if (op.outputs.size() != 1 || op.outputs[0] == program::kNoValue ||
        program.value(op.outputs[0]).kind != program::ValueKind::integer)
      continue;
    const auto size = size_of(program, op, known);
    if (size && is_known_everywhere(*size)) known[static_cast<size_t>(op.outputs[0])] = size;
  }
  return known;
}

}  // namespace renkei::graph
