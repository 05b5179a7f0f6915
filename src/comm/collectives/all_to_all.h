// All-to-all by pairwise exchange. The n ranks each hold n parts; part q of rank r becomes part r
// of rank q.
//
//   step s = 0 … n-1: send part (r + s) to rank r + s, receive part (r - s) from rank r - s
//
// n-1 messages and (n-1)/n of the buffer from each rank; every step is a permutation, so no rank
// receives from two at once.
#pragma once

#include "comm/collectives/all_gather.h"

namespace renkei::comm {

// `from` and `into` must not overlap; their count must be a multiple of the number of ranks.
void all_to_all(Transport& transport, ConstBuffer from, Buffer into, const Call& call = {},
                Check check = Check::agreement);

// The same with parts of any size, in rank order: sent[q] elements go to rank q and received[q]
// come from there; sent[q] of rank r is received[r] of rank q.
void all_to_all_v(Transport& transport, ConstBuffer from, std::span<const size_t> sent, Buffer into,
                  std::span<const size_t> received, const Call& call = {},
                  Check check = Check::agreement);

}  // namespace renkei::comm
