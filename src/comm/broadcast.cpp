// Binomial tree broadcast. Ranks are renumbered v = r - root (modulo n), so that the root is 0.
//
//   parent of v      v without its lowest set bit
//   children of v    v + 2^k for every 2^k below the lowest set bit of v (below n for the root)
//
//   n = 8    0 ─┬─ 4 ─┬─ 6 ─── 7
//               │     └─ 5
//               ├─ 2 ─── 3
//               └─ 1
//
// ceil(log2 n) rounds of the whole buffer: right for small buffers; for large ones a scatter and
// an all-gather would send each byte about twice instead of log2 n times.

#include "comm/broadcast.h"

#include <bit>
#include <vector>

#include "base/error.h"
#include "comm/exchange.h"

namespace renkei::comm {
namespace {

void broadcast_bytes(Transport& transport, std::span<std::byte> bytes, int root, const Call& call) {
  const auto n = static_cast<unsigned>(transport.size());
  const auto v = static_cast<unsigned>(wrap(transport.rank() - root, transport.size()));
  const auto rank_of = [&](unsigned place) {
    return static_cast<int>((place + static_cast<unsigned>(root)) % n);
  };
  const unsigned lowest_bit = v == 0 ? std::bit_ceil(n) : v & (~v + 1);
  if (v != 0) receive_and_wait(transport, rank_of(v - lowest_bit), bytes, Tag::broadcast, call);

  // The largest subtree first: it has the longest way to go.
  std::vector<Request> sending;
  for (unsigned distance = lowest_bit / 2; distance > 0; distance /= 2)
    if (v + distance < n)
      sending.push_back(
          transport.send(rank_of(v + distance), bytes, static_cast<int>(Tag::broadcast)));
  for (Request& request : sending) transport.wait(request, call);
}

}  // namespace

template <typename T>
void broadcast(Transport& transport, std::span<T> buffer, int root, const Call& call) {
  if (root < 0 || root >= transport.size())
    throw Error(ErrorCode::bug,
                fmt::format("broadcast from rank {} among {} ranks", root, transport.size()));
  broadcast_bytes(transport, std::as_writable_bytes(buffer), root, with_name(call, "broadcast"));
}

template void broadcast(Transport&, std::span<float>, int, const Call&);
template void broadcast(Transport&, std::span<double>, int, const Call&);
template void broadcast(Transport&, std::span<int64_t>, int, const Call&);
template void broadcast(Transport&, std::span<uint8_t>, int, const Call&);
template void broadcast(Transport&, std::span<std::byte>, int, const Call&);

}  // namespace renkei::comm
