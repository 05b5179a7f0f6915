#include "program/size.h"

#include <fmt/format.h>

#include "program/expression.h"

namespace renkei::program {

Size Size::expression(std::string text) {
  const Expression parsed = parse_expression(text);
  if (!program::mentions(parsed, "")) return evaluate(parsed, {}, text);
  Size size;
  size.text_ = normal_form(parsed, text);
  // What cancels out leaves a number.
  const Expression simple = parse_expression(size.text_);
  return program::mentions(simple, "") ? size : Size(evaluate(simple, {}, text));
}

std::string Size::str() const {
  return is_number() ? fmt::format("{}", number_) : text_;
}

bool Size::mentions(std::string_view symbol) const {
  return !is_number() && !symbol.empty() && program::mentions(parse_expression(text_), symbol);
}

int64_t Size::value(const SymbolValues& symbols) const {
  return is_number() ? number_ : evaluate(parse_expression(text_), symbols, text_);
}

Size operator*(const Size& a, const Size& b) {
  return Size::expression(fmt::format("({})*({})", a.str(), b.str()));
}

Size operator+(const Size& a, const Size& b) {
  return Size::expression(fmt::format("({}) + ({})", a.str(), b.str()));
}

}  // namespace renkei::program
