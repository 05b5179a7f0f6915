// The arguments of nodes in a .pt2 file, and the numbers that stand for PyTorch's enumerations.
#pragma once

#include <string>
#include <unordered_map>

#include "capture/json_reading.h"
#include "program/program.h"

namespace renkei::capture {

// What the names in a graph stand for: a value, or one number or None that was given for it.
class Scope {
 public:
  void bind(const std::string& name, program::Argument argument, const Place& place);
  const program::Argument& find(const std::string& name, const Place& place) const;

 private:
  std::unordered_map<std::string, program::Argument> bound_;
};

program::DType dtype_of(const json& scalar_type, std::string_view what, const Place& place);
void check_strided(const json& layout, std::string_view what, const Place& place);

// {"as_tensor": {"name": "x"}} and its like; `what` is the argument's name.
program::Argument read_argument(const json& argument, std::string_view what, const Scope& scope,
                                const Place& place);

}  // namespace renkei::capture
