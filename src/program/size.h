// A size that may depend on symbols, such as the number of samples in a batch: a whole number, or
// an expression like "batch", "49*batch" or "(s0 + 1)//2". Expressions are kept as text, in the
// syntax that torch.export writes, as sums of products: what is equal as a polynomial is equal as
// text; other equal expressions may differ.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace renkei::program {

using SymbolValues = std::map<std::string, int64_t, std::less<>>;

class Size {
 public:
  Size(int64_t number = 0) : number_(number) {}  // NOLINT: a number is a size
  // Throws a data Error where the text is no expression (parsed with bounded depth and length).
  static Size expression(std::string text);

  bool is_number() const { return text_.empty(); }
  int64_t number() const { return number_; }         // of a number only
  const std::string& text() const { return text_; }  // of an expression only
  std::string str() const;                           // of both, for people
  bool mentions(std::string_view symbol) const;

  // The value when the symbols have these values. Throws a data Error that names a symbol that has
  // none, a division by zero, or a result beyond 64 bits.
  int64_t value(const SymbolValues& symbols) const;

  friend Size operator*(const Size& a, const Size& b);
  friend Size operator+(const Size& a, const Size& b);
  friend bool operator==(const Size&, const Size&) = default;

 private:
  int64_t number_ = 0;
  std::string text_ = {};
};

}  // namespace renkei::program
