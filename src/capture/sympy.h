// Sizes in .pt2 files are expressions of the sympy library as it writes them for Python:
//   Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))
// They become the notation of program::Size: "2*s77 + 1".
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace renkei::capture {

// Each symbol gets the name that `rename` gives it. Throws a data Error for what is no such text,
// or has a function that sizes cannot have.
using Rename = std::function<std::string(const std::string&)>;
std::string size_from_sympy(std::string_view text, const Rename& rename);

}  // namespace renkei::capture
