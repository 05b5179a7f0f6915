#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/philox.h"

namespace renkei::tune {

// Doubles for the search: the numbers of a trial depend on the seed and its number only.
class Random {
 public:
  Random(uint64_t seed, uint64_t trial)
      : key_(seed ^ 0x74756E65),
        counter_{0, 0, static_cast<uint32_t>(trial), static_cast<uint32_t>(trial >> 32)} {}

  double uniform() {  // in (0, 1)
    const PhiloxBlock block = philox(counter_, key_);
    ++counter_[0];
    const uint64_t bits = (uint64_t{block[0]} << 32 | block[1]) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }
  size_t below(size_t n) { return static_cast<size_t>(uniform() * static_cast<double>(n)); }

 private:
  uint64_t key_;
  PhiloxBlock counter_;
};

}  // namespace renkei::tune
