#include "capture/pt2_symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "capture/sympy.h"

namespace renkei::capture {
namespace {

constexpr std::string_view kBatch = "batch";

int64_t bound(const json* range, std::string_view name, int64_t otherwise) {
  const json* value = range ? find_field(*range, name) : nullptr;
  if (!value || !value->is_number_integer()) return otherwise;
  if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX}) return INT64_MAX;
  return value->get<int64_t>();
}

}  // namespace

Symbols::Symbols(const json* range_constraints, std::string batch, const Place& place)
    : ranges_(range_constraints), batch_(std::move(batch)), place_(place) {
  if (!batch_.empty()) use(batch_);
}

program::Size Symbols::size(const json& sym_int, const Place& place) {
  const auto [tag, value] = tagged(sym_int, "size", place);
  if (tag == "as_int") return integer_of(value, "size", place);
  if (tag != "as_expr") place.refuse(fmt::format("a size of the kind '{}' is not known", tag));
  const std::string text = text_of(field(value, "expr_str", place), "expr_str", place);
  const auto found = known_.find(text);
  if (found != known_.end()) return found->second;
  try {
    const std::string converted =
        size_from_sympy(text, [this](const std::string& name) { return use(name); });
    return known_[text] = program::Size::expression(converted);
  } catch (const Error& error) {
    place.refuse(error.message, error.hint);
  }
}

std::string Symbols::use(const std::string& name) {
  const auto found = shown_.find(name);
  if (found != shown_.end()) return found->second;
  std::string shown(name == batch_ ? kBatch : name);
  if (name != batch_ && name == kBatch) shown += "_";
  all_.push_back(make(name, shown));
  return shown_[name] = shown;
}

program::Symbol Symbols::make(const std::string& name, const std::string& shown) const {
  const json* range = ranges_ ? find_field(*ranges_, name) : nullptr;
  program::Symbol symbol{.name = shown, .batch = name == batch_};
  // PyTorch assumes while it traces that sizes are neither 0 nor 1, and writes 2; what it captured
  // holds for 1 too, and its own check of inputs lets 1 pass.
  const int64_t low = bound(range, "min_val", 0);
  symbol.low = low == 2 ? 1 : std::max<int64_t>(low, 0);
  symbol.high = bound(range, "max_val", INT64_MAX);
  if (symbol.low > symbol.high)
    place_.refuse(fmt::format("the range of the symbol {} is empty", name));
  return symbol;
}

std::string lone_symbol(const json& sym_int) {
  const json* expression = find_field(sym_int, "as_expr");
  const json* text = expression ? find_field(*expression, "expr_str") : nullptr;
  if (!text || !text->is_string() || !text->get_ref<const std::string&>().starts_with("Symbol("))
    return {};
  try {
    return size_from_sympy(text->get_ref<const std::string&>(),
                           [](const std::string& name) { return name; });
  } catch (const Error&) {
    return {};  // it is refused where it is used
  }
}

}  // namespace renkei::capture
