// Sums of squares whose bits do not depend on the order of the additions, so that a norm is the
// same for any number of ranks, any shards and any instruction set.
//
// The square of a float is exact in double. It is cut into three parts, multiples of 2^4, 2^-36 and
// 2^-76, and what is left is dropped. Each part is a whole number of its unit and is added as such:
// integers do not round. (The idea is that of the binned sums of Demmel and Nguyen, "Fast
// reproducible floating-point summation", 2013, with bins that are fixed.) Elements from 1e-11 on
// count with all their digits.
#pragma once

#include <array>
#include <cstdint>

namespace renkei::optim {

struct SquareSum {
  static constexpr int kLimbs = 3;
  static constexpr int kLimbBits = 40;
  static constexpr int kTopExponent = 4;

  // From here on a sum counts as infinite: a norm of 4e8. Below, everything is exact.
  static constexpr double kLimit = 0x1p57;

  // The sum is Σ limbs[k] 2^(4 - 40 k). Ranks add their limbs, and their overflows, as integers.
  std::array<int64_t, kLimbs> limbs{};
  int64_t overflows =
      0;  // not zero: a part of the sum was over the limit, infinite or not a number

  bool finite() const;
  double value() const;
  double norm() const;

  SquareSum& operator+=(const SquareSum& other);
  bool operator==(const SquareSum&) const = default;

  // Moves what is too large for a limb into the next one; the sum stays the same, and equal sums
  // below the limit get equal limbs.
  void carry();
};

}  // namespace renkei::optim
