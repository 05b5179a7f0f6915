// Sums over rows, for each column. They are taken in a fixed number of parts, which are added in
// their order, so that the bits do not depend on the number of threads.
#pragma once

#include "compute/rows.h"

namespace renkei::compute {

inline constexpr int64_t kRowParts = 16;

// Calls work(part, first row, last row) for all parts.
template <typename Work>
void for_row_parts(int64_t rows, Work work) {
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < kRowParts; ++part)
    work(part, rows * part / kRowParts, rows * (part + 1) / kRowParts);
}

// In scratch memory, until the next kernel.
class RowSums {
 public:
  RowSums(int64_t columns, int64_t kinds);
  // The sums of a part, set to 0: [kind][column].
  float* clear(int64_t part) const;
  // The sums of all parts; nothing where `to` is null.
  void write(int64_t kind, Write write, float* to) const;

 private:
  int64_t columns_, kinds_;
  float* sums_;
};

}  // namespace renkei::compute
