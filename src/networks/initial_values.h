// The numbers that parameters and buffers start from.
//
// Each depends on the seed, the name of the parameter and its place in it alone, so that a rank can
// make the part of a parameter that it keeps, in any number of threads, and two ranks make the same
// bits. Only operations that IEEE 754 rounds the same way everywhere are used: no logarithm of the
// C library, no fused products.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "program/program.h"

namespace renkei::networks {

struct InitialPart {
  uint64_t seed = 0;
  std::string_view name;  // of the state
  program::Initial initial;
  int64_t begin = 0;  // the place of the first number within the whole
};

// Throws a usage Error where the values are to be given by a file.
void fill_initial(std::span<float> values, const InitialPart& part, int threads = 1);
void fill_initial(std::span<int64_t> values, const InitialPart& part);  // constant and count only

}  // namespace renkei::networks
