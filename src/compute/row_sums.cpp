#include "compute/row_sums.h"

#include <algorithm>

#include "compute/scratch.h"

namespace renkei::compute {

RowSums::RowSums(int64_t columns, int64_t kinds)
    : columns_(columns),
      kinds_(kinds),
      sums_(scratch(static_cast<size_t>(kRowParts * kinds * columns), 3)) {}

float* RowSums::clear(int64_t part) const {
  float* sums = sums_ + part * kinds_ * columns_;
  std::fill_n(sums, kinds_ * columns_, 0.0f);
  return sums;
}

void RowSums::write(int64_t kind, Write write, float* to) const {
  if (!to) return;
  for (int64_t c = 0; c < columns_; ++c) {
    double sum = 0;
    for (int64_t part = 0; part < kRowParts; ++part)
      sum += static_cast<double>(sums_[(part * kinds_ + kind) * columns_ + c]);
    to[c] = (write == Write::add ? to[c] : 0) + static_cast<float>(sum);
  }
}

}  // namespace renkei::compute
