#include "run/size_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/error.h"

namespace renkei::run {

std::optional<SizeOp> size_op_of(std::string_view target) {
  using enum SizeOp;
  static const std::map<std::string_view, SizeOp> ops{{"operator.add", add},
                                                      {"operator.sub", subtract},
                                                      {"operator.mul", multiply},
                                                      {"operator.floordiv", floor_divide},
                                                      {"operator.truediv", divide},
                                                      {"operator.mod", modulo},
                                                      {"operator.pow", power},
                                                      {"operator.neg", negate},
                                                      {"operator.eq", equal},
                                                      {"operator.ne", not_equal},
                                                      {"operator.lt", less},
                                                      {"operator.le", less_equal},
                                                      {"operator.gt", greater},
                                                      {"operator.ge", greater_equal},
                                                      {"operator.and_", both},
                                                      {"operator.or_", either},
                                                      {"operator.not_", inverse},
                                                      {"operator.sym_not", inverse},
                                                      {"operator.sym_min", least},
                                                      {"operator.sym_max", greatest},
                                                      {"operator.sym_int", to_integer},
                                                      {"operator.sym_float", to_real}};
  const auto found = ops.find(target);
  if (found == ops.end()) return {};
  return found->second;
}

ArgumentValue size_argument(const program::Argument& argument, const std::string& place) {
  if (const auto* reference = std::get_if<program::Reference>(&argument))
    return {.kind = ArgumentValue::Kind::value, .value = reference->value};
  if (const auto* number = std::get_if<int64_t>(&argument)) return {.constant = *number};
  if (const auto* number = std::get_if<double>(&argument)) return {.constant = *number};
  if (const auto* flag = std::get_if<bool>(&argument)) return {.constant = *flag};
  throw Error(ErrorCode::data, fmt::format("{} takes numbers only", place));
}

namespace {

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double real_of(const c10::IValue& value) {
  if (value.isInt()) return static_cast<double>(value.toInt());
  if (value.isBool()) return value.toBool() ? 1 : 0;
  return value.toDouble();
}

c10::IValue compare(SizeOp op, double a, double b) {
  switch (op) {
    case SizeOp::equal:
      return a == b;
    case SizeOp::not_equal:
      return a != b;
    case SizeOp::less:
      return a < b;
    case SizeOp::less_equal:
      return a <= b;
    case SizeOp::greater:
      return a > b;
    case SizeOp::greater_equal:
      return a >= b;
    case SizeOp::both:
      return a != 0 && b != 0;
    case SizeOp::either:
      return a != 0 || b != 0;
    default:
      return {};
  }
}

c10::IValue of_integers(SizeOp op, int64_t a, int64_t b, const std::string& place) {
  if ((op == SizeOp::floor_divide || op == SizeOp::modulo) && b == 0)
    throw Error(ErrorCode::data, fmt::format("{} divides by zero", place));
  switch (op) {
    case SizeOp::add:
      return a + b;
    case SizeOp::subtract:
      return a - b;
    case SizeOp::multiply:
      return a * b;
    case SizeOp::floor_divide:
      return floor_quotient(a, b);
    case SizeOp::modulo:
      return a - floor_quotient(a, b) * b;
    case SizeOp::power:
      return static_cast<int64_t>(std::llround(std::pow(a, b)));
    case SizeOp::least:
      return std::min(a, b);
    case SizeOp::greatest:
      return std::max(a, b);
    default:
      return compare(op, static_cast<double>(a), static_cast<double>(b));
  }
}

c10::IValue of_reals(SizeOp op, double a, double b) {
  switch (op) {
    case SizeOp::add:
      return a + b;
    case SizeOp::subtract:
      return a - b;
    case SizeOp::multiply:
      return a * b;
    case SizeOp::floor_divide:
      return std::floor(a / b);
    case SizeOp::divide:
      return a / b;
    case SizeOp::modulo:
      return a - std::floor(a / b) * b;
    case SizeOp::power:
      return std::pow(a, b);
    case SizeOp::least:
      return std::min(a, b);
    case SizeOp::greatest:
      return std::max(a, b);
    default:
      return compare(op, a, b);
  }
}

}  // namespace

c10::IValue evaluate(SizeOp op, const Stack& arguments, const std::string& place) {
  const bool single = op == SizeOp::negate || op == SizeOp::inverse || op == SizeOp::to_integer ||
                      op == SizeOp::to_real;
  if (arguments.size() != (single ? 1 : 2))
    throw Error(ErrorCode::data, fmt::format("{} has {} arguments", place, arguments.size()));
  const c10::IValue& a = arguments[0];
  if (op == SizeOp::to_real) return real_of(a);
  if (op == SizeOp::to_integer)
    return a.isInt() ? a : c10::IValue(static_cast<int64_t>(std::trunc(real_of(a))));
  if (op == SizeOp::inverse) return real_of(a) == 0;
  if (op == SizeOp::negate) return a.isInt() ? c10::IValue(-a.toInt()) : c10::IValue(-real_of(a));
  const c10::IValue& b = arguments[1];
  if (a.isInt() && b.isInt() && op != SizeOp::divide)
    return of_integers(op, a.toInt(), b.toInt(), place);
  return of_reals(op, real_of(a), real_of(b));
}

}  // namespace renkei::run
