// Dissemination barrier (Hensgen, Finkel and Manber, 1988). n ranks, ceil(log2 n) rounds of one
// empty message each:
//
//   round k: rank r sends to r + 2^k and receives from r - 2^k   (both modulo n)
//
// Before round k, rank r knows that the 2^k ranks up to itself have arrived; the round doubles
// that. No rank is special, and no round can mix with the next: its messages come from another
// peer.

#include "comm/collectives/barrier.h"

#include "comm/collectives/exchange.h"

namespace renkei::comm {

void barrier(Transport& transport, const Call& call) {
  const Call named = with_name(call, "barrier");
  const int n = transport.size(), r = transport.rank();
  // 64 bits, so that the doubling cannot overflow past the last round.
  for (int64_t distance = 1; distance < n; distance *= 2) {
    const int d = static_cast<int>(distance);
    exchange(transport, wrap(r + d, n), {}, wrap(r - d, n), {}, Tag::barrier, named);
  }
}

}  // namespace renkei::comm
