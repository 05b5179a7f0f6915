// Plain images to compare with, and the way to and from the blocked layout.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "compute/blocked.h"

namespace renkei::compute {

// Normal numbers around `mean`.
inline std::vector<float> random_values(int64_t count, uint64_t seed, float mean = 0) {
  Random random(seed, RandomUse::random_input, 0, 0);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = mean + random.normal();
  return values;
}

inline size_t plain_index(const ImageShape& s, int64_t n, int64_t c, int64_t pixel) {
  return static_cast<size_t>((n * s.channels + c) * s.pixels() + pixel);
}
inline size_t blocked_index(const ImageShape& s, int64_t n, int64_t c, int64_t pixel) {
  return static_cast<size_t>(((n * s.blocks() + c / s.block) * s.pixels() + pixel) * s.block +
                             c % s.block);
}

inline std::vector<float> to_blocked(const ImageShape& s, const std::vector<float>& plain) {
  std::vector<float> blocked(plain.size());
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t p = 0; p < s.pixels(); ++p)
        blocked[blocked_index(s, n, c, p)] = plain[plain_index(s, n, c, p)];
  return blocked;
}

inline std::vector<float> to_plain(const ImageShape& s, const std::vector<float>& blocked) {
  std::vector<float> plain(blocked.size());
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t p = 0; p < s.pixels(); ++p)
        plain[plain_index(s, n, c, p)] = blocked[blocked_index(s, n, c, p)];
  return plain;
}

// The largest difference, relative to the largest expected value.
template <typename Expected>
double relative_error(const std::vector<float>& values, const std::vector<Expected>& expected) {
  EXPECT_EQ(values.size(), expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < values.size() && i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(
        difference, std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i])));
  }
  EXPECT_GT(largest, 0);
  return difference / largest;
}

}  // namespace renkei::compute
