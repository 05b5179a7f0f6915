// What may be chosen: named parameters with a range or a list, some of which exist only when
// another one has a certain value, and products that must come out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::tune {

enum class Kind { real, integer, choice };

struct Parameter {
  std::string name;
  Kind kind = Kind::real;
  bool logarithmic = false;
  double low = 0, high = 1;               // of numbers, both included
  std::vector<std::string> choices = {};  // of Kind::choice
  // Only when the parameter `when` has one of `values`; empty: always.
  std::string when = {};
  std::vector<std::string> values = {};
};

// The product of integer parameters is a number: P x Q = ranks.
struct ProductConstraint {
  std::vector<std::string> names;
  double product = 1;
};

struct Space {
  std::vector<Parameter> parameters;  // those that others depend on come first
  std::vector<ProductConstraint> constraints = {};

  const Parameter* find(std::string_view name) const;
};

// Values by name; a choice is its place in the list. Parameters that do not apply are missing.
using Point = std::map<std::string, double>;

bool active(const Parameter& parameter, const Space& space, const Point& point);
bool satisfies(const Space& space, const Point& point);

// As people and commands read it: "0.001", "128", "ring".
std::string text_of(const Parameter& parameter, double value);
std::map<std::string, std::string> texts_of(const Space& space, const Point& point);

// "lr=log:1e-4:0.1", "nb=int:16:512", "n=logint:1:4096", "x=real:0:1", "how=choice:ring,tree"; then
// " if how=ring,tree" for a condition. Usage Errors.
Parameter parse_parameter(const std::string& text, const Space& earlier);
// "p*q=16".
ProductConstraint parse_constraint(const std::string& text, const Space& space);

}  // namespace renkei::tune
