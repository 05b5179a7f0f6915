// The collectives once more, as plainly as they can be written: everything goes to rank 0, which
// works in rank order and sends the result back. Oracles for tests and for `--check`; they share
// neither tags nor algorithms nor kernels with what they check. Same parameters as the fast ones.
#pragma once

#include "comm/buffer/reduce.h"
#include "comm/collectives/all_gather.h"
#include "comm/transport/transport.h"

namespace renkei::comm::reference {

void barrier(Transport& transport, const Call& call = {});

void broadcast(Transport& transport, Buffer buffer, int root, const Call& call = {});

void all_gather(Transport& transport, ConstBuffer mine, Buffer all, const Call& call = {});

void all_gather_v(Transport& transport, ConstBuffer mine, Buffer all,
                  std::span<const size_t> counts, const Call& call = {});

Buffer reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction,
                      const Call& call = {});

// Floating-point sums are ((x_0 + x_1) + x_2) + …, which rounds differently from the ring's.
void allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call = {});

// The kernels of reduce.h, one element at a time.
void reduce(Buffer into, ConstBuffer from, Reduction reduction);
void scale(Buffer buffer, double factor);
float widened(Half value);
float widened(BFloat16 value);
Half to_half(float value);
BFloat16 to_bfloat16(float value);

}  // namespace renkei::comm::reference
