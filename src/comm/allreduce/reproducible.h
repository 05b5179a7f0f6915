// An allreduce whose bits depend on the ranks' values alone: not on the algorithm, the order of the
// ring, the layout of hosts or the size of segments. The buffer is cut into blocks, a block into n
// chunks.
//
//   1  every rank sends its own, unreduced chunk q to rank q
//   2  rank q reduces the n contributions to its chunk in rank order
//   3  all-gather
//
// 2 (n-1)/n of the buffer from each rank, as few bytes as the ring, but a rank adds n contributions
// at once instead of one a step, and the messages of step 1 cross between hosts unreduced: with L
// ranks a host, L times as many bytes go between hosts as in the hierarchical allreduce. A block
// bounds the scratch memory.
//
// Order of sums: ((x0 + x1) + x2) + …, 16-bit floats accumulated in f32 and rounded once: what
// reduce_many does, so that any other code which uses it in rank order gives the same bits.
#pragma once

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

void reproducible_allreduce(Transport& transport, Buffer buffer, Reduction reduction,
                            const Call& call);

}  // namespace renkei::comm
