// Recursive halving and doubling (Rabenseifner, 2004). p = 2^k is the largest power of two that is
// not above the number n of ranks; e = n - p ranks are too many.
//
//   fold      ranks 0, 2, … 2e-2 send their buffer to the rank above, which reduces it and stands
//             for both; the p ranks that are left are renumbered v = 0 … p-1
//   halving   for d = p/2, p/4, … 1: v and v xor d each keep one half of what they still hold,
//             send the other and reduce; in the end, v has chunk v of p
//   doubling  the same backwards, copying
//   unfold    the ranks above send the result back
//
// 2 log2 p steps and 2 (p-1)/p of the buffer, the fewest steps at the least bytes; two more steps
// and twice the whole buffer on the folded ranks when n is no power of two. The choice for small
// and medium buffers.
//
// Order of sums: x(2i) + x(2i+1) first for folded pairs; then the value of v is combined with that
// of v xor p/2, the results with those of v xor p/4, and so on: a balanced binary tree, the same
// for every element. IEEE addition commutes, so both partners' orders give the same bits, and each
// chunk is copied from the one rank that completed it.
#pragma once

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

void halving_doubling_allreduce(Transport& transport, Buffer buffer, Reduction reduction,
                                const Call& call, size_t segment_bytes = 0);

}  // namespace renkei::comm
