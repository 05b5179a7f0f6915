// The arguments of a program's operation as Torch's dispatcher takes them.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "program/program.h"

namespace renkei::run {

// What an operation takes from and leaves on the dispatcher's stack.
using Stack = std::vector<c10::IValue>;

// An argument that is made when the operation is called: a constant, a register, or a list that has
// registers among its elements.
struct ArgumentValue {
  enum class Kind : uint8_t { constant, value, tensors, optional_tensors, integers };
  Kind kind = Kind::constant;
  c10::IValue constant = {};
  program::ValueId value = program::kNoValue;
  bool tensor =
      false;  // the operation takes a tensor: where the value is a size, one is made of it
  struct Element {
    program::ValueId value = program::kNoValue;
    int64_t number = 0;  // where there is no value
  };
  std::vector<Element> list = {};
};

// A number in the place of a tensor: it does not decide the type of the result.
c10::IValue number_as_tensor(const c10::Scalar& number);

// `place` names the operation in errors.
ArgumentValue argument_value(const program::Argument& argument, const c10::Argument& expected,
                             const std::string& place);

}  // namespace renkei::run
