// The expressions of sizes: parsed, evaluated, and brought into a normal form. Internal to
// size.cpp.
//
//   sum     = product (("+" | "-") product)*
//   product = factor (("*" | "/" | "//" | "%") factor)*
//   factor  = "-" factor | atom ["**" factor]
//   atom    = number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/size.h"

namespace renkei::program {

struct Expression {
  enum class Kind : uint8_t {
    number,
    name,
    add,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    call
  };
  Kind kind = Kind::number;
  int64_t number = 0;
  std::string name = {};  // of a symbol or a function
  std::vector<Expression> parts = {};
};

// All throw data Errors that quote the text.
Expression parse_expression(std::string_view text);
int64_t evaluate(const Expression& expression, const SymbolValues& symbols, std::string_view text);
bool mentions(const Expression& expression, std::string_view symbol);  // empty: any
// As a sum of products, like terms added up: "2*(3*batch + s0) + s0" is "6*batch + 3*s0".
// What would become very long stays as it is.
std::string normal_form(const Expression& expression, std::string_view text);

}  // namespace renkei::program
