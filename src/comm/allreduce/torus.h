// 2-D torus (Mikami et al., 2018). The n = R C ranks stand in R rows of C; the rank at place p of
// the order is in row p / C and column p mod C.
//
//   1  reduce-scatter in each row: the rank in column c has chunk c of its row's sum
//   2  ring allreduce of that chunk in each column
//   3  all-gather in each row
//
// 2 (C-1) + 2 steps instead of the ring's 2 (R C - 1), and 2 (n-1)/n of the buffer, as few
// bytes as the ring: for many ranks and medium buffers. With a prime n it is the ring.
//
// Order of sums: as a ring inside the row, then as a ring over the rows. It depends on R, C, the
// order and where an element lies. In step 2, all ranks of a column get the same bits, which step 3
// copies.
#pragma once

#include "comm/allreduce/ring.h"

namespace renkei::comm {

struct TorusOptions {
  int columns = 0;              // must divide the number of ranks; 0: as square as possible
  std::vector<int> order = {};  // as for the ring
  size_t segment_bytes = 0;
};

void torus_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                     const TorusOptions& options = {});

// The smallest divisor of n that is at least its square root.
int square_columns(int ranks);

}  // namespace renkei::comm
