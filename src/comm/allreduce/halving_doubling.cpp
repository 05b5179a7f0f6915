#include "comm/allreduce/halving_doubling.h"

#include <bit>

#include "comm/buffer/chunk_range.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {

void halving_doubling_allreduce(Transport& transport, Buffer buffer, Reduction reduction,
                                const Call& call, size_t segment_bytes) {
  constexpr Tag kTag = Tag::halving_doubling;
  const int n = transport.size(), r = transport.rank();
  const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(n))), extra = n - p;
  const bool in_pair = r < 2 * extra;
  if (in_pair && r % 2 == 0) {  // the rank above stands for this one
    exchange_and_reduce(transport, r + 1, buffer, {}, reduction, segment_bytes, kTag, call);
    return receive_and_wait(transport, r + 1, buffer.span(), kTag, call);
  }
  if (in_pair)
    exchange_and_reduce(transport, r - 1, {}, buffer, reduction, segment_bytes, kTag, call);

  const int v = in_pair ? r / 2 : r - extra;
  const auto rank_of = [&](int place) { return place < extra ? 2 * place + 1 : place + extra; };
  // Chunks [begin, begin + chunks) as one piece.
  const auto piece = [&](int begin, int chunks) {
    const size_t first = chunk_range(buffer.count, p, begin).begin;
    return buffer.part(first, chunk_range(buffer.count, p, begin + chunks - 1).end - first);
  };
  for (int d = p / 2; d > 0; d /= 2) {
    const int keep = v / d * d, give = keep ^ d;
    exchange_and_reduce(transport, rank_of(v ^ d), piece(give, d), piece(keep, d), reduction,
                        segment_bytes, kTag, call);
  }
  finish_mean(piece(v, 1), reduction, n);
  for (int d = 1; d < p; d *= 2) {
    const int have = v / d * d, want = have ^ d, peer = rank_of(v ^ d);
    exchange(transport, peer, piece(have, d).span(), peer, piece(want, d).span(), kTag, call);
  }
  if (in_pair) send_and_wait(transport, r - 1, buffer.span(), kTag, call);
}

}  // namespace renkei::comm
