// Arithmetic on sizes that only the run knows, as torch.export writes it: "operator.mul" and the
// like. They are no operations of Torch's dispatcher.
#pragma once

#include <optional>
#include <string_view>

#include "run/argument_values.h"

namespace renkei::run {

enum class SizeOp : uint8_t {
  add,
  subtract,
  multiply,
  floor_divide,
  divide,
  modulo,
  power,
  negate,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  both,
  either,
  inverse,
  least,
  greatest,
  to_integer,
  to_real
};

std::optional<SizeOp> size_op_of(std::string_view target);

ArgumentValue size_argument(const program::Argument& argument, const std::string& place);

c10::IValue evaluate(SizeOp op, const Stack& arguments, const std::string& place);

}  // namespace renkei::run
