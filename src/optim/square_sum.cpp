#include "optim/square_sum.h"

#include <cmath>
#include <limits>

namespace renkei::optim {

void SquareSum::carry() {
  for (int k = kLimbs - 1; k > 0; --k) {
    const int64_t carried = limbs[k] >> kLimbBits;  // rounds down, also below zero
    limbs[k] -= carried * (int64_t{1} << kLimbBits);
    limbs[k - 1] += carried;
  }
  if (static_cast<double>(limbs[0]) >= std::ldexp(kLimit, -kTopExponent)) {
    limbs = {};
    ++overflows;
  }
}

SquareSum& SquareSum::operator+=(const SquareSum& other) {
  for (int k = 0; k < kLimbs; ++k) limbs[k] += other.limbs[k];
  overflows += other.overflows;
  carry();
  return *this;
}

double SquareSum::value() const {
  SquareSum carried = *this;
  carried.carry();
  if (carried.overflows > 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int k = kLimbs - 1; k >= 0; --k)
    sum += std::ldexp(static_cast<double>(carried.limbs[k]), kTopExponent - kLimbBits * k);
  return sum;
}

bool SquareSum::finite() const {
  return std::isfinite(value());
}

double SquareSum::norm() const {
  return std::sqrt(value());
}

}  // namespace renkei::optim
