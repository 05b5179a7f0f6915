// The symbols of an exported program: which of them is the batch, and what range each has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "capture/json_reading.h"
#include "program/program.h"

namespace renkei::capture {

class Symbols {
 public:
  // `batch` is the symbol that is called "batch" from now on; empty: none is.
  Symbols(const json* range_constraints, std::string batch, const Place& place);

  // {"as_int": 3} or {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s77'))"}}
  program::Size size(const json& sym_int, const Place& place);

  std::vector<program::Symbol> all() const { return all_; }  // those that sizes mentioned

 private:
  std::string use(const std::string& name);
  program::Symbol make(const std::string& name, const std::string& shown) const;

  const json* ranges_;
  std::string batch_;
  Place place_;
  std::map<std::string, std::string> shown_;  // name in the file → name in the program
  std::vector<program::Symbol> all_;
  std::map<std::string, program::Size> known_;  // expressions repeat
};

// The symbol that is the whole of a size, or nothing.
std::string lone_symbol(const json& sym_int);

}  // namespace renkei::capture
