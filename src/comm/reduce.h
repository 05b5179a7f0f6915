#pragma once

#include <span>

namespace renkei::comm {

// A maximum or minimum of numbers with a NaN among them is NaN, whatever the order: a broken
// gradient must not hide. Sums of integers wrap around.
enum class Reduction { sum, max, min };

// into[i] = into[i] (reduction) from[i]. T: float, double, int64_t.
template <typename T>
void reduce(std::span<T> into, std::span<const T> from, Reduction reduction);

}  // namespace renkei::comm
