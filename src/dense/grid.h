#pragma once

#include <cstdint>

namespace renkei::dense {

// The ranks as P rows and Q columns.
struct Grid {
  int p = 1;
  int q = 1;
};

// The most square one with P <= Q: panels are factored by a column of P ranks, which is the part
// that does not overlap, so few rows are better than few columns.
Grid squarest_grid(int ranks);

// Completes what the user gave; 0 means not given. A usage Error where P x Q is not the number of
// ranks, with grids that would do.
Grid choose_grid(int ranks, int p, int q);

// The largest multiple of `block` whose matrix takes at most these bytes over all ranks.
int64_t order_for_memory(double bytes, int block);

}  // namespace renkei::dense
