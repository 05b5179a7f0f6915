#include "program/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/error.h"

namespace renkei::program {
namespace {

using Kind = Expression::Kind;
constexpr size_t kLongest = 4096;
constexpr int kDeepest = 100;

[[noreturn]] void refuse_expression(std::string_view text, std::string_view why) {
  const bool cut = text.size() > 200;
  throw Error(ErrorCode::data,
              fmt::format("the size \"{}{}\" {}", text.substr(0, 200), cut ? "…" : "", why));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kLongest) refuse("is too long");
  }

  Expression parse() {
    Expression all = sum(0);
    if (skip_spaces(); at_ < text_.size())
      refuse(fmt::format("has an unexpected '{}'", text_[at_]));
    return all;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { refuse_expression(text_, why); }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(token)) return false;
    // "*" is not the beginning of "**", nor "/" of "//".
    if (token == "*" && rest.starts_with("**")) return false;
    if (token == "/" && rest.starts_with("//")) return false;
    at_ += token.size();
    return true;
  }

  static Expression pair(Kind kind, Expression a, Expression b) {
    Expression both{.kind = kind};
    both.parts.push_back(std::move(a));
    both.parts.push_back(std::move(b));
    return both;
  }

  static Expression negated(Expression a) {
    return pair(Kind::multiply, Expression{.number = -1}, std::move(a));
  }

  // A chain is kept flat, so that a long one is not deep.
  static void append(Expression& all, Kind kind, Expression next) {
    if (all.kind == kind)
      all.parts.push_back(std::move(next));
    else
      all = pair(kind, std::move(all), std::move(next));
  }

  Expression sum(int depth) {
    if (depth > kDeepest) refuse("has too many brackets");
    Expression all = product(depth);
    while (true) {
      if (take("+"))
        append(all, Kind::add, product(depth));
      else if (take("-"))
        append(all, Kind::add, negated(product(depth)));
      else
        return all;
    }
  }

  Expression product(int depth) {
    Expression all = factor(depth);
    for (int nested = 0;;) {
      if (take("*"))
        append(all, Kind::multiply, factor(depth));
      else if (take("//"))
        all = pair(Kind::floor_divide, std::move(all), factor(depth)), ++nested;
      else if (take("/"))
        all = pair(Kind::divide, std::move(all), factor(depth)), ++nested;
      else if (take("%"))
        all = pair(Kind::modulo, std::move(all), factor(depth)), ++nested;
      else
        return all;
      if (nested > kDeepest) refuse("has too many divisions in a row");
    }
  }

  Expression factor(int depth) {
    if (depth > kDeepest) refuse("has too many signs or powers in a row");
    if (take("-")) return negated(factor(depth + 1));
    Expression base = atom(depth);
    if (take("**")) return pair(Kind::power, std::move(base), factor(depth + 1));
    return base;
  }

  Expression atom(int depth) {
    if (take("(")) {
      Expression inside = sum(depth + 1);
      if (!take(")")) refuse("lacks a closing bracket");
      return inside;
    }
    skip_spaces();
    if (at_ == text_.size()) refuse("ends too early");
    const auto first = static_cast<unsigned char>(text_[at_]);
    if (std::isdigit(first)) return number();
    if (!std::isalpha(first) && first != '_')
      refuse(fmt::format("has an unexpected '{}'", text_[at_]));
    const size_t from = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    Expression named{.kind = Kind::name, .name = std::string(text_.substr(from, at_ - from))};
    if (take("(")) call(named, depth);
    return named;
  }

  Expression number() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        refuse("has a number beyond 64 bits");
    if (at_ < text_.size() && text_[at_] == '.') refuse("is not made of whole numbers");
    return {.kind = Kind::number, .number = value};
  }

  void call(Expression& named, int depth) {
    named.kind = Kind::call;
    do named.parts.push_back(sum(depth + 1));
    while (take(","));
    if (!take(")")) refuse("lacks a closing bracket");
    static const std::map<std::string_view, size_t> functions{
        {"Mod", 2},     {"PythonMod", 2}, {"FloorDiv", 2}, {"CleanDiv", 2},   {"floor", 1},
        {"ceiling", 1}, {"Max", 0},       {"Min", 0},      {"FloorToInt", 1}, {"CeilToInt", 1}};
    const auto found = functions.find(named.name);
    if (found == functions.end())
      refuse(fmt::format("uses the function {}, which is not known", named.name.substr(0, 50)));
    if (found->second != 0 && named.parts.size() != found->second)
      refuse(fmt::format("gives {} {} arguments instead of {}", named.name, named.parts.size(),
                         found->second));
    if (found->second == 2) {
      named.kind = named.name.ends_with("Mod") ? Kind::modulo : Kind::floor_divide;
      named.name.clear();
    }
    if (named.name == "FloorToInt") named.name = "floor";
    if (named.name == "CeilToInt") named.name = "ceiling";
  }

  std::string_view text_;
  size_t at_ = 0;
};

// A fraction in lowest terms; the lower number is positive. floor(s0/2 - 1/2) needs them.
struct Fraction {
  int64_t upper = 0, lower = 1;
};

class Evaluator {
 public:
  Evaluator(const SymbolValues& symbols, std::string_view text) : symbols_(symbols), text_(text) {}

  Fraction value(const Expression& e) const {
    switch (e.kind) {
      case Kind::number:
        return {e.number};
      case Kind::name:
        return {symbol(e.name)};
      case Kind::call:
        return call(e);
      case Kind::power:
        return power(value(e.parts[0]), value(e.parts[1]));
      default:
        break;
    }
    Fraction all = value(e.parts[0]);
    for (size_t i = 1; i < e.parts.size(); ++i) {
      const Fraction next = value(e.parts[i]);
      if (e.kind == Kind::add) all = add(all, next);
      if (e.kind == Kind::multiply) all = multiply(all, next);
      if (e.kind == Kind::divide) all = multiply(all, inverse(next));
      if (e.kind == Kind::floor_divide) all = {floor(multiply(all, inverse(next)))};
      if (e.kind == Kind::modulo) {
        const int64_t times = floor(multiply(all, inverse(next)));
        all = add(all, multiply({negative(times)}, next));
      }
    }
    return all;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { refuse_expression(text_, why); }

  int64_t symbol(const std::string& name) const {
    const auto found = symbols_.find(name);
    if (found == symbols_.end())
      refuse(fmt::format("depends on {}, whose value is not known", name.substr(0, 100)));
    return found->second;
  }

  int64_t fit(__int128 number) const {
    if (number > INT64_MAX || number < INT64_MIN) refuse("is beyond 64 bits");
    return static_cast<int64_t>(number);
  }

  int64_t negative(int64_t number) const { return fit(-static_cast<__int128>(number)); }

  Fraction reduced(__int128 upper, __int128 lower) const {
    __int128 a = upper < 0 ? -upper : upper, b = lower;
    while (b != 0) a = std::exchange(b, a % b);
    return {fit(upper / a), fit(lower / a)};
  }

  Fraction multiply(Fraction a, Fraction b) const {
    return reduced(static_cast<__int128>(a.upper) * b.upper,
                   static_cast<__int128>(a.lower) * b.lower);
  }

  Fraction add(Fraction a, Fraction b) const {
    if (a.lower == 1 && b.lower == 1) return {fit(static_cast<__int128>(a.upper) + b.upper)};
    const __int128 left = static_cast<__int128>(a.upper) * b.lower;
    const __int128 right = static_cast<__int128>(b.upper) * a.lower;
    return reduced(left + right, static_cast<__int128>(a.lower) * b.lower);
  }

  Fraction inverse(Fraction a) const {
    if (a.upper == 0) refuse("divides by zero");
    return a.upper > 0 ? Fraction{a.lower, a.upper}
                       : Fraction{negative(a.lower), negative(a.upper)};
  }

  static int64_t floor(Fraction a) { return a.upper / a.lower - (a.upper % a.lower < 0 ? 1 : 0); }

  Fraction power(Fraction base, Fraction exponent) const {
    if (exponent.lower != 1) refuse("has a power that is not whole");
    if (exponent.upper < 0) return power(inverse(base), {negative(exponent.upper)});
    if (base.lower == 1 && (base.upper == 0 || base.upper == 1))
      return {exponent.upper == 0 ? 1 : base.upper};
    if (base.lower == 1 && base.upper == -1) return {exponent.upper % 2 == 0 ? 1 : -1};
    if (exponent.upper > 63) refuse("is beyond 64 bits");
    Fraction all{1};
    for (int64_t i = 0; i < exponent.upper; ++i) all = multiply(all, base);
    return all;
  }

  Fraction call(const Expression& e) const {
    const Fraction first = value(e.parts[0]);
    if (e.name == "floor") return {floor(first)};
    if (e.name == "ceiling") return {floor(first) + (first.lower != 1 ? 1 : 0)};
    Fraction best = first;
    for (size_t i = 1; i < e.parts.size(); ++i) {
      const Fraction next = value(e.parts[i]);
      const bool less = static_cast<__int128>(next.upper) * best.lower <
                        static_cast<__int128>(best.upper) * next.lower;
      if (less == (e.name == "Min")) best = next;
    }
    return best;
  }

  const SymbolValues& symbols_;
  std::string_view text_;
};

// A sum of products: for the sorted factors of each product, how often it is there.
using Factors = std::vector<std::string>;
using Sum = std::map<Factors, int64_t>;
constexpr size_t kMostTerms = 64, kMostFactors = 32, kMostWork = 10000;
struct TooComplicated {};

class Normaliser {
 public:
  explicit Normaliser(std::string_view text) : text_(text) {}

  std::string print(const Expression& e) const { return print(sum_of(e)); }

 private:
  [[noreturn]] void refuse(std::string_view why) const { refuse_expression(text_, why); }

  static Sum atom(std::string text) { return {{Factors{std::move(text)}, 1}}; }

  static Sum number(int64_t value) { return value == 0 ? Sum{} : Sum{{Factors{}, value}}; }

  Sum sum_of(const Expression& e) const {
    switch (e.kind) {
      case Kind::number:
        return number(e.number);
      case Kind::name:
        return atom(e.name);
      case Kind::power:
        return power(e);
      case Kind::add: {
        Sum all;
        for (const Expression& part : e.parts)
          for (const auto& [factors, count] : sum_of(part)) add(all, factors, count);
        return all;
      }
      case Kind::multiply: {
        Sum all = number(1);
        for (const Expression& part : e.parts) all = multiply(all, sum_of(part));
        return all;
      }
      case Kind::call:
        return atom(fmt::format("{}({})", e.name, list(e.parts)));
      case Kind::modulo:
        return atom(fmt::format("Mod({})", list(e.parts)));
      case Kind::divide:
        return atom(fmt::format("({}/{})", operand(e.parts[0]), operand(e.parts[1])));
      case Kind::floor_divide:
        return atom(fmt::format("({}//{})", operand(e.parts[0]), operand(e.parts[1])));
    }
    return {};
  }

  void add(Sum& all, const Factors& factors, int64_t count) const {
    int64_t& there = all[factors];
    if (__builtin_add_overflow(there, count, &there)) refuse("has a number beyond 64 bits");
    if (there == 0) all.erase(factors);
  }

  Sum multiply(const Sum& a, const Sum& b) const {
    if (a.size() * b.size() > kMostTerms || (work_ += a.size() * b.size()) > kMostWork)
      throw TooComplicated();
    Sum all;
    for (const auto& [left, count] : a)
      for (const auto& [right, times] : b) {
        if (left.size() + right.size() > kMostFactors) throw TooComplicated();
        Factors factors = left;
        factors.insert(factors.end(), right.begin(), right.end());
        std::sort(factors.begin(), factors.end());
        int64_t product = 0;
        if (__builtin_mul_overflow(count, times, &product)) refuse("has a number beyond 64 bits");
        add(all, factors, product);
      }
    return all;
  }

  Sum power(const Expression& e) const {
    const Sum exponent = sum_of(e.parts[1]);
    const bool constant =
        exponent.empty() || (exponent.size() == 1 && exponent.begin()->first.empty());
    const int64_t times = constant && !exponent.empty() ? exponent.begin()->second : 0;
    if (!constant || times < 0)
      return atom(fmt::format("({}**{})", operand(e.parts[0]), operand(e.parts[1])));
    if (times > static_cast<int64_t>(kMostFactors)) throw TooComplicated();
    Sum all = number(1);
    const Sum base = sum_of(e.parts[0]);
    for (int64_t i = 0; i < times; ++i) all = multiply(all, base);
    return all;
  }

  std::string list(const std::vector<Expression>& parts) const {
    std::string all;
    for (const Expression& part : parts) all += (all.empty() ? "" : ", ") + print(part);
    return fitting(std::move(all));
  }

  // Inside of a division or power: with brackets unless it is one symbol, number or bracket.
  std::string operand(const Expression& e) const {
    const Sum sum = sum_of(e);
    const bool plain =
        sum.empty() ||
        (sum.size() == 1 && ((sum.begin()->first.empty() && sum.begin()->second > 0) ||
                             (sum.begin()->first.size() == 1 && sum.begin()->second == 1)));
    return plain ? print(sum) : "(" + print(sum) + ")";
  }

  std::string print(const Sum& sum) const {
    if (sum.empty()) return "0";
    std::string all;
    const auto append = [&](const Factors& factors, int64_t count) {
      const bool minus = count < 0 && !all.empty();
      if (!all.empty()) all += minus ? " - " : " + ";
      all += product(factors, count, minus);
      all = fitting(std::move(all));
    };
    for (const auto& [factors, count] : sum)
      if (!factors.empty()) append(factors, count);
    if (const auto constant = sum.find({}); constant != sum.end()) append({}, constant->second);
    return all;
  }

  static std::string product(const Factors& factors, int64_t count, bool without_sign) {
    std::string all = fmt::format("{}", count);
    if (without_sign) all.erase(0, 1);
    if (factors.empty()) return all;
    if (all == "1" || all == "-1")
      all.pop_back();
    else
      all += '*';
    for (auto at = factors.begin(); at != factors.end();) {
      const auto end = std::find_if(at, factors.end(), [&](const auto& f) { return f != *at; });
      if (at != factors.begin()) all += '*';
      all += *at;
      if (end - at > 1) all += fmt::format("**{}", end - at);
      at = end;
    }
    return all;
  }

  static std::string fitting(std::string all) {
    if (all.size() > kLongest) throw TooComplicated();
    return all;
  }

  std::string_view text_;
  mutable size_t work_ = 0;  // products of two terms so far
};

}  // namespace

Expression parse_expression(std::string_view text) {
  return Parser(text).parse();
}

int64_t evaluate(const Expression& expression, const SymbolValues& symbols, std::string_view text) {
  const Fraction value = Evaluator(symbols, text).value(expression);
  if (value.lower != 1) refuse_expression(text, "is not a whole number");
  return value.upper;
}

bool mentions(const Expression& expression, std::string_view symbol) {
  if (expression.kind == Kind::name) return symbol.empty() || expression.name == symbol;
  return std::any_of(expression.parts.begin(), expression.parts.end(),
                     [&](const Expression& part) { return mentions(part, symbol); });
}

std::string normal_form(const Expression& expression, std::string_view text) {
  try {
    return Normaliser(text).print(expression);
  } catch (const TooComplicated&) {
    return std::string(text);
  }
}

}  // namespace renkei::program
