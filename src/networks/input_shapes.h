// What the inputs of a program take of a sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace renkei::networks {

struct InputShape {
  std::string name = {};
  std::vector<int64_t> shape = {};  // of one sample; empty: one number
  int64_t below = 0;  // more than 0: whole numbers from 0 to below - 1, as token ids are
};

// "3x224x224", "128<30522" (128 ids below 30522), several with commas between. Without names.
std::vector<InputShape> parse_input_shapes(const std::string& text);

// Throws a data Error for an input whose first dimension is not the batch, or of which another
// dimension is not a number.
std::vector<InputShape> input_shapes(const program::Program& program);

}  // namespace renkei::networks
