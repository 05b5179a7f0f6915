#include "comm/allreduce/reproducible.h"

#include <algorithm>
#include <vector>

#include "comm/allreduce/ring.h"
#include "comm/buffer/chunk_range.h"
#include "comm/buffer/scratch.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {
namespace {

constexpr size_t kBlockBytes = 8 * 1024 * 1024;

void allreduce_block(Transport& transport, Buffer block, const Scratch& scratch,
                     Reduction reduction, const Call& call) {
  const int n = transport.size(), r = transport.rank();
  const std::vector<Buffer> chunks = chunks_by_place(block, checked_order({}, n));
  const Buffer own = chunks[static_cast<size_t>(r)];
  std::vector<const std::byte*> contributions;  // to our chunk, by rank
  std::vector<Request> receiving, sending;
  for (int from = 0; from < n; ++from) {
    const auto place = scratch.span(static_cast<size_t>(from) * own.bytes(), own.bytes());
    contributions.push_back(from == r ? own.data : place.data());
    if (from != r)
      receiving.push_back(transport.receive(from, place, static_cast<int>(Tag::reproducible)));
  }
  for (int s = 1; s < n; ++s) {
    const int to = wrap(r + s, n);
    sending.push_back(transport.send(to, chunks[static_cast<size_t>(to)].span(),
                                     static_cast<int>(Tag::reproducible)));
  }
  for (Request& request : receiving) transport.wait(request, call);
  reduce_many(own, contributions, reduction);
  // What was sent is overwritten by the all-gather.
  for (Request& request : sending) transport.wait(request, call);
  ring_all_gather(transport, chunks, call);
}

}  // namespace

void reproducible_allreduce(Transport& transport, Buffer buffer, Reduction reduction,
                            const Call& call) {
  const int n = transport.size();
  if (n == 1) return;
  const size_t block_elements = kBlockBytes / size_of(buffer.dtype);
  const size_t largest_chunk = chunk_range(std::min(block_elements, buffer.count), n, 0).size();
  const Scratch scratch(buffer, static_cast<size_t>(n) * largest_chunk * size_of(buffer.dtype));
  for (size_t first = 0; first < buffer.count; first += block_elements)
    allreduce_block(transport, buffer.part(first, std::min(block_elements, buffer.count - first)),
                    scratch, reduction, call);
}

}  // namespace renkei::comm
