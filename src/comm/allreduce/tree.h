// Binomial tree: reduce to rank 0, then broadcast from it. In round k = 0, 1, … rank r with bit k
// as its lowest set bit sends its partial result to r - 2^k and is done.
//
//   n = 8    round 0: 1→0 3→2 5→4 7→6     round 1: 2→0 6→4     round 2: 4→0
//
// 2 ceil(log2 n) steps of the whole buffer, for any n: for buffers so small that only the number of
// steps counts. Few messages in all (2 (n-1)), which matters where ranks share cores.
//
// Order of sums: ((x0 + x1) + (x2 + x3)) + …, a balanced tree in rank order, the same for every
// element. Rank 0 completes the result and all others copy it.
#pragma once

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

void tree_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                    size_t segment_bytes = 0);

// Only the first half: the result (without the division of a mean) is on rank 0; the other ranks'
// buffers hold partial results.
void tree_reduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                 size_t segment_bytes = 0);

}  // namespace renkei::comm
