#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace renkei::optim {

// Normal numbers; each seed another sequence.
inline std::vector<float> random_floats(uint64_t seed, size_t count, float size = 1) {
  Random random(seed, RandomUse::random_input, 0, 0);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = size * random.normal();
  return numbers;
}

// To compare bits: NaN is itself, and -0 is not 0.
inline std::vector<uint32_t> bits_of(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float number : numbers) bits.push_back(std::bit_cast<uint32_t>(number));
  return bits;
}

}  // namespace renkei::optim
