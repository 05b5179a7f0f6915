#pragma once

#include <span>
#include <vector>

#include "program/program.h"

namespace renkei::graph {

// What ops of a program use when each part computes the common ones for itself.
struct Used {
  std::vector<program::ValueId> values;  // inputs, and what other ops make that are not common
  std::vector<int> states;               // places in Program::state
  std::vector<int> common;               // ops; all three ascending
};

class Uses {
 public:
  // `linked` are common ops of which all are needed where one is. Values that are known are not
  // used by anybody.
  Uses(const program::Program& program, const std::vector<int>& common,
       const std::vector<std::vector<int>>& linked, const std::vector<bool>& known);

  Used of(std::span<const int> ops) const;
  int maker(program::ValueId value) const { return maker_[static_cast<size_t>(value)]; }

 private:
  const program::Program& program_;
  const std::vector<std::vector<int>>& linked_;
  const std::vector<bool>& known_;
  std::vector<int> maker_, state_of_, link_of_;  // -1: none
  std::vector<bool> is_common_;
};

}  // namespace renkei::graph
