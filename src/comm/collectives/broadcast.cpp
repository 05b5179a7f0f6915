// Two broadcasts. Ranks are renumbered v = r - root (modulo n), so that the root is 0.
//
// Binomial tree:
//
//   parent of v      v without its lowest set bit
//   children of v    v + 2^k for every 2^k below the lowest set bit of v (below n for the root)
//
//   n = 8    0 ─┬─ 4 ─┬─ 6 ─── 7
//               │     └─ 5
//               ├─ 2 ─── 3
//               └─ 1
//
// ceil(log2 n) rounds of the whole buffer, ceil(log2 n) (a + b t) for latency a and b bytes that
// take t each: right for small buffers.
//
// Chain: v receives from v - 1 and passes on to v + 1, S segments one behind the other, in
// (S + n - 2) (a + b/S t): for large buffers close to b t, which is the least possible.

#include "comm/collectives/broadcast.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

// With two ranks, both send the buffer once, and the tree in one piece.
constexpr size_t kChainBytes = 64 * 1024;
constexpr size_t kChainSegmentBytes = 64 * 1024;
constexpr size_t kLargeChainSegmentBytes = 1024 * 1024;

}  // namespace

void tree_broadcast(Transport& transport, Buffer buffer, int root, const Call& call) {
  const auto n = static_cast<unsigned>(transport.size());
  const auto v = static_cast<unsigned>(wrap(transport.rank() - root, transport.size()));
  const auto rank_of = [&](unsigned place) {
    return static_cast<int>((place + static_cast<unsigned>(root)) % n);
  };
  const unsigned lowest_bit = v == 0 ? std::bit_ceil(n) : v & (~v + 1);
  if (v != 0)
    receive_and_wait(transport, rank_of(v - lowest_bit), buffer.span(), Tag::broadcast, call);

  // The largest subtree first: it has the longest way to go.
  std::vector<Request> sending;
  for (unsigned distance = lowest_bit / 2; distance > 0; distance /= 2)
    if (v + distance < n)
      sending.push_back(
          transport.send(rank_of(v + distance), buffer.span(), static_cast<int>(Tag::broadcast)));
  for (Request& request : sending) transport.wait(request, call);
}

void chain_broadcast(Transport& transport, Buffer buffer, int root, size_t segment_bytes,
                     const Call& call) {
  const int n = transport.size(), r = transport.rank(), v = wrap(r - root, n);
  const Segments segments(buffer, segment_bytes);
  std::vector<Request> receiving, sending;
  if (v > 0)
    for (size_t k = 0; k < segments.size(); ++k)
      receiving.push_back(
          transport.receive(wrap(r - 1, n), segments[k].span(), static_cast<int>(Tag::broadcast)));
  for (size_t k = 0; k < segments.size(); ++k) {
    if (v > 0) transport.wait(receiving[k], call);
    if (v < n - 1)
      sending.push_back(
          transport.send(wrap(r + 1, n), segments[k].span(), static_cast<int>(Tag::broadcast)));
  }
  for (Request& request : sending) transport.wait(request, call);
}

bool broadcasts_by_tree(const Transport& transport, size_t bytes) {
  return transport.size() <= 2 || bytes < kChainBytes;
}

void broadcast(Transport& transport, Buffer buffer, int root, const Call& call, Check check) {
  if (root < 0 || root >= transport.size())
    throw Error(ErrorCode::bug,
                fmt::format("broadcast from rank {} among {} ranks", root, transport.size()));
  const Call named = with_name(call, "broadcast");
  if (check == Check::agreement)
    check_agreement(transport,
                    {.collective = Collective::broadcast,
                     .dtype = buffer.dtype,
                     .root = root,
                     .count = buffer.count},
                    named);
  if (broadcasts_by_tree(transport, buffer.bytes())) {
    tree_broadcast(transport, buffer, root, named);
  } else {
    const bool large = buffer.bytes() > 64 * kLargeChainSegmentBytes;
    chain_broadcast(transport, buffer, root, large ? kLargeChainSegmentBytes : kChainSegmentBytes,
                    named);
  }
}

}  // namespace renkei::comm
