// Data sets hand out one row of f32 numbers per sample. A program with several inputs, or with
// whole numbers as inputs, gets operations before its first that cut such rows apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace renkei::networks {

struct InputShape {
  std::vector<int64_t> shape;  // of one sample
  int64_t below = 0;           // more than 0: whole numbers from 0 to below - 1, as token ids are
};

// "3x224x224", "128<30522" (128 ids below 30522), several with commas between.
std::vector<InputShape> parse_input_shapes(const std::string& text);

// What the first `count` inputs of a program take. Throws a data Error for an input whose first
// dimension is not the batch, or of which another dimension is not a number.
std::vector<InputShape> input_shapes(const program::Program& program, size_t count);

// The shape of a sample of which the inputs are made: that of a single input, otherwise a row.
std::vector<int64_t> joined_shape(const std::vector<InputShape>& inputs);

// The same program with its first `count` inputs as one, "input", of f32 and joined_shape(). One
// more may be there, "target", of a program that computes its loss.
program::Program join_inputs(program::Program program, size_t count);

}  // namespace renkei::networks
