// Do all ranks make the same call? Before a collective exchanges data, every rank sends a header of
// 64 bytes (what it calls, on how much, at which step, under which name) to the next rank and
// compares the one that it receives from the previous rank with its own. Equality around the ring
// is equality of all; where two ranks differ, at least one rank finds out, and says what both sides
// called. A collective needs every rank's data, so the ranks that do not see the difference
// themselves wait for one that does, and get no wrong sums.
//
// The transport keeps the order of messages, so the k-th header of a rank meets the k-th of its
// neighbour: the number of the call needs no counter, and a rank that left one out is found at the
// next.
//
// Cost: one message of one cache line each way, the latency of a single step, whatever the number
// of ranks. A caller that has made sure otherwise passes Check::nothing on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

enum class Check { agreement, nothing };

enum class Collective : uint8_t { allreduce, reduce_scatter, all_gather, broadcast, all_to_all };
std::string_view name_of(Collective collective);  // "reduce_scatter"

struct Agreement {
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  uint32_t variant = 0;  // of whatever else must agree: the algorithm, the counts per rank
  uint64_t count = 0;
};

// Throws a communication Error that names both sides when the previous rank calls something else.
void check_agreement(Transport& transport, const Agreement& mine, const Call& call);

// FNV-1a, for `variant`.
uint32_t hash_of(std::span<const size_t> values);

}  // namespace renkei::comm
