#include "capture/sympy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace renkei::capture {
namespace {

constexpr size_t kLongest = 16384;
constexpr int kDeepest = 64;

// A function, its name and what is between its brackets. Numbers, and names in quotes, are leaves.
struct Term {
  std::string name;
  std::vector<Term> parts = {};
  bool call = false;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kLongest) refuse("is too long");
  }

  Term parse() {
    Term term = next(0);
    if (at_ != text_.size()) refuse("goes on behind its end");
    return term;
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::data, fmt::format("the size \"{}\" {}", text_.substr(0, 200), why),
                "export the model again with the PyTorch that Renkei was built with");
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Term next(int depth) {
    if (depth > kDeepest) refuse("has too many brackets");
    if (peek() == '\'' || peek() == '"') return quoted();
    const size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '.' ||
           peek() == '-')
      ++at_;
    Term term{.name = std::string(text_.substr(from, at_ - from))};
    if (term.name.empty()) refuse("is not an expression");
    if (peek() == '=') {  // positive=True says nothing that matters here
      ++at_;
      next(depth + 1);
      return {};
    }
    if (peek() != '(') return term;
    ++at_;
    term.call = true;
    while (peek() != ')') {
      Term part = next(depth + 1);
      if (!part.name.empty()) term.parts.push_back(std::move(part));
      if (peek() == ',') ++at_;
      while (peek() == ' ') ++at_;
      if (peek() == '\0') refuse("ends too early");
    }
    ++at_;
    return term;
  }

  Term quoted() {
    const char quote = text_[at_++];
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos || end == at_) refuse("has a quote without an end");
    Term term{.name = std::string(text_.substr(at_, end - at_))};
    at_ = end + 1;
    return term;
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Printer {
 public:
  Printer(const Parser& parser, const Rename& rename) : parser_(parser), rename_(rename) {}

  // Always in brackets, or one name or number: Size brings it into a readable form.
  std::string print(const Term& term) const {
    const std::string& name = term.name;
    if (!term.call) return leaf(name);
    if (name == "Symbol" || name == "Dummy") return symbol(term);
    if (name == "Integer") return leaf(one(term).name);
    if (name == "Float") return fraction(one(term).name);
    if (name == "Add") return joined(term, " + ");
    if (name == "Mul") return joined(term, "*");
    if (name == "Max" || name == "Min") return fmt::format("{}({})", name, list(term));
    if (name == "ToFloat" || name == "Identity") return print(one(term));
    if (name == "TruncToInt" || name == "FloorToInt" || name == "floor" || name == "TruncToFloat")
      return fmt::format("floor({})", print(one(term)));  // a size is not negative
    if (name == "CeilToInt" || name == "ceiling")
      return fmt::format("ceiling({})", print(one(term)));
    return of_two_or_three(term);
  }

 private:
  std::string of_two_or_three(const Term& term) const {
    const std::string& name = term.name;
    if (name == "FloorDiv" || name == "CleanDiv") return pair(term, "//");
    if (name == "Mod" || name == "PythonMod") return pair(term, "%");
    if (name == "IntTrueDiv" || name == "FloatTrueDiv" || name == "Rational")
      return pair(term, "/");
    if (name == "Pow" || name == "PowByNatural" || name == "FloatPow") return pair(term, "**");
    if (name == "CeilDiv") return fmt::format("ceiling({})", pair(term, "/"));
    if (name == "ModularIndexing" && term.parts.size() == 3)
      return fmt::format("(({}//{}) % {})", print(term.parts[0]), print(term.parts[1]),
                         print(term.parts[2]));
    parser_.refuse(fmt::format("uses the function {}, which is not known", name.substr(0, 50)));
  }

  const Term& one(const Term& term) const {
    if (term.parts.empty()) parser_.refuse(fmt::format("has an empty {}", term.name));
    return term.parts[0];
  }

  std::string symbol(const Term& term) const {
    const std::string& name = one(term).name;
    for (const char c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
        parser_.refuse("has a symbol with an unusual name");
    if (one(term).call || std::isdigit(static_cast<unsigned char>(name[0])))
      parser_.refuse("has a symbol with an unusual name");
    return rename_(name);
  }

  std::string leaf(const std::string& text) const {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      parser_.refuse(fmt::format("has '{}' where a number must be", text.substr(0, 50)));
    return number < 0 ? fmt::format("(-{})", text.substr(1)) : text;
  }

  // 1.5 is (3/2): factors of scale are exact in binary, and sizes are computed with fractions.
  std::string fraction(const std::string& text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) < 1e15))
      parser_.refuse("has a factor that is not a number");
    int64_t lower = 1;
    for (; value != std::floor(value) && lower < int64_t{1} << 40; lower *= 2) value *= 2;
    if (value != std::floor(value) || std::abs(value) > 0x1p53)
      parser_.refuse(fmt::format("has the factor {}, which is no short fraction", text));
    return fmt::format("({}/{})", static_cast<int64_t>(value), lower);
  }

  std::string list(const Term& term, std::string_view between = ", ") const {
    std::vector<std::string> parts;
    for (const Term& part : term.parts) parts.push_back(print(part));
    if (parts.empty()) parser_.refuse(fmt::format("has an empty {}", term.name));
    return fmt::format("{}", fmt::join(parts, between));
  }

  std::string joined(const Term& term, std::string_view between) const {
    return fmt::format("({})", list(term, between));
  }

  std::string pair(const Term& term, std::string_view between) const {
    if (term.parts.size() != 2)
      parser_.refuse(fmt::format("has a {} of {} parts", term.name, term.parts.size()));
    return joined(term, between);
  }

  const Parser& parser_;
  const Rename& rename_;
};

}  // namespace

std::string size_from_sympy(std::string_view text, const Rename& rename) {
  Parser parser(text);
  const Term term = parser.parse();
  return Printer(parser, rename).print(term);
}

}  // namespace renkei::capture
