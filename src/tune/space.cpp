#include "tune/space.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace renkei::tune {
namespace {

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(mark, begin)) != std::string::npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("the parameter '{}' {}", text, why),
              "write it like lr=log:1e-4:0.1, nb=int:16:512, n=logint:1:64, x=real:0:1, "
              "how=choice:ring,tree or 'k=int:1:4 if how=ring'");
}

double number(const std::string& text, const std::string& whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    refuse(whole, fmt::format("has '{}' where a number belongs", text));
  return value;
}

void set_condition(Parameter& parameter, const std::string& text, const std::string& condition,
                   const Space& earlier) {
  const size_t equals = condition.find('=');
  if (equals == std::string::npos) refuse(text, "has a condition without '='");
  parameter.when = condition.substr(0, equals);
  parameter.values = split(condition.substr(equals + 1), ',');
  const Parameter* parent = earlier.find(parameter.when);
  if (!parent || parent->kind != Kind::choice)
    refuse(text, fmt::format("depends on '{}', which is no earlier choice", parameter.when));
  for (const std::string& value : parameter.values)
    if (std::ranges::count(parent->choices, value) == 0)
      refuse(text, fmt::format("depends on {}={}, which can't be", parameter.when, value));
}

}  // namespace

const Parameter* Space::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

bool active(const Parameter& parameter, const Space& space, const Point& point) {
  if (parameter.when.empty()) return true;
  const Parameter* parent = space.find(parameter.when);
  const auto value = point.find(parameter.when);
  return parent && value != point.end() &&
         std::ranges::count(parameter.values, text_of(*parent, value->second)) > 0;
}

bool satisfies(const Space& space, const Point& point) {
  return std::ranges::all_of(space.constraints, [&](const ProductConstraint& constraint) {
    double product = 1;
    for (const std::string& name : constraint.names) product *= point.at(name);
    return product == constraint.product;
  });
}

std::string text_of(const Parameter& parameter, double value) {
  if (parameter.kind == Kind::choice) return parameter.choices.at(static_cast<size_t>(value));
  if (parameter.kind == Kind::integer) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::map<std::string, std::string> texts_of(const Space& space, const Point& point) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : point) texts[name] = text_of(*space.find(name), value);
  return texts;
}

Parameter parse_parameter(const std::string& text, const Space& earlier) {
  const size_t condition = text.find(" if ");
  const std::string body = text.substr(0, condition);
  const size_t equals = body.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "has no name");
  Parameter parameter{.name = body.substr(0, equals)};
  if (earlier.find(parameter.name)) refuse(text, "is there twice");
  const std::vector<std::string> parts = split(body.substr(equals + 1), ':');
  const std::string& kind = parts[0];
  if (kind == "choice") {
    parameter.kind = Kind::choice;
    parameter.choices = split(body.substr(body.find(':', equals) + 1), ',');
    if (parts.size() < 2 || parameter.choices.empty()) refuse(text, "has no choices");
  } else if (kind == "real" || kind == "log" || kind == "int" || kind == "logint") {
    if (parts.size() != 3) refuse(text, "needs a lowest and a highest value");
    parameter.kind = kind.ends_with("int") ? Kind::integer : Kind::real;
    parameter.logarithmic = kind.starts_with("log");
    parameter.low = number(parts[1], text);
    parameter.high = number(parts[2], text);
    if (!(parameter.low < parameter.high)) refuse(text, "has an empty range");
    if (parameter.logarithmic && parameter.low <= 0)
      refuse(text, "has no logarithm at its low end");
    if (parameter.kind == Kind::integer && (parameter.low != std::floor(parameter.low) ||
                                            parameter.high != std::floor(parameter.high)))
      refuse(text, "must begin and end at whole numbers");
  } else {
    refuse(text, fmt::format("is of the unknown kind '{}'", kind));
  }
  if (condition != std::string::npos)
    set_condition(parameter, text, text.substr(condition + 4), earlier);
  return parameter;
}

ProductConstraint parse_constraint(const std::string& text, const Space& space) {
  const size_t equals = text.find('=');
  ProductConstraint constraint;
  if (equals != std::string::npos) {
    constraint.names = split(text.substr(0, equals), '*');
    constraint.product = number(text.substr(equals + 1), text);
  }
  for (const std::string& name : constraint.names) {
    const Parameter* parameter = space.find(name);
    if (!parameter || parameter->kind != Kind::integer || !parameter->when.empty())
      constraint.names.clear();
  }
  if (constraint.names.empty())
    throw Error(ErrorCode::usage, fmt::format("'{}' is no constraint", text),
                "write the product of whole-number parameters, like p*q=16");
  return constraint;
}

}  // namespace renkei::tune
