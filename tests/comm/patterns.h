// Buffers whose every element any rank can compute, so that a test knows what another rank sent.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/buffer/reduce.h"
#include "comm/buffer/reference.h"

namespace renkei::comm {

// SplitMix64 (Steele, Lea and Flood, 2014). One multiplication chain per element: under a sanitizer
// the tests would otherwise spend their time on making numbers.
inline uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// A number as an element.
template <typename T>
T element(double value) {
  if constexpr (std::is_same_v<T, Half>)
    return reference::to_half(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return reference::to_bfloat16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Whole numbers in [-1000, 1000], in [-15, 15] for 16-bit floats, any byte for byte types: sums of
// thousands of them (of 8 for 16 bits) are exact, so that every order of additions gives the same
// bits.
template <typename T>
std::vector<T> pattern(int rank, size_t count, uint32_t salt = 0) {
  const uint64_t stream = mixed((uint64_t{salt} << 32) + static_cast<uint64_t>(rank));
  std::vector<T> values(count);
  T* const value = values.data();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = mixed(stream + i);
    if constexpr (sizeof(T) == 1)
      value[i] = static_cast<T>(random & 0xFF);
    else if constexpr (sizeof(T) == 2)
      value[i] = element<T>(static_cast<double>(random % 31) - 15);
    else
      value[i] = static_cast<T>(static_cast<int64_t>(random % 2001) - 1000);
  }
  return values;
}

// Numbers of very different sizes, whose sums depend on the order.
template <typename T>
std::vector<T> rough_pattern(int rank, size_t count) {
  const uint64_t stream = mixed(static_cast<uint64_t>(rank));
  std::vector<T> values(count);
  T* const value = values.data();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = mixed(stream + i);
    const double mantissa = static_cast<double>(random >> 11) * 0x1p-52 - 1;  // in [-1, 1)
    // 16-bit floats: so that no sum of 8 overflows.
    const int exponents = sizeof(T) == 2 ? 12 : 40;
    value[i] = element<T>(std::ldexp(mantissa, static_cast<int>(random % 64) % exponents));
  }
  return values;
}

// What a reduction over the ranks' patterns must give.
template <typename T>
std::vector<T> reduced_pattern(int ranks, size_t count, Reduction reduction, uint32_t salt = 0) {
  std::vector<T> result = pattern<T>(0, count, salt);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<T> other = pattern<T>(rank, count, salt);
    for (size_t i = 0; i < count; ++i) {
      if (reduction == Reduction::sum) result[i] += other[i];
      if (reduction == Reduction::max) result[i] = std::max(result[i], other[i]);
      if (reduction == Reduction::min) result[i] = std::min(result[i], other[i]);
    }
  }
  return result;
}

// A buffer's elements as what they are.
template <typename T>
std::span<T> elements_of(Buffer buffer) {
  return {reinterpret_cast<T*>(buffer.data), buffer.count};
}

// Equal also where == is not: NaN is itself, and -0 is not +0.
template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace renkei::comm
