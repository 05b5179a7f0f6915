// Ring reduce-scatter. The n ranks form a ring; a buffer is cut into n chunks.
//
//   step s = 0 … n-2: send chunk (r - s - 1) to the right,
//                     receive chunk (r - s - 2) from the left and reduce it into ours
//
// Chunk c starts at rank c + 1, collects every rank's part on its way and ends complete on rank c.
// A rank sends (n-1)/n of the buffer in n-1 steps and needs one chunk of scratch memory. The order
// of a chunk's additions is fixed by its place in the ring, so equal inputs give equal bits.

#include "comm/reduce_scatter.h"

#include <memory>

#include "comm/exchange.h"

namespace renkei::comm {

template <typename T>
std::span<T> reduce_scatter(Transport& transport, std::span<T> buffer, Reduction reduction,
                            const Call& call) {
  const int n = transport.size(), r = transport.rank();
  if (n == 1) return buffer;
  const Call named = with_name(call, "reduce_scatter");
  const int left = wrap(r - 1, n), right = wrap(r + 1, n);
  const auto chunk = [&](int index) {
    const Range range = chunk_range(buffer.size(), n, wrap(index, n));
    return buffer.subspan(range.begin, range.size());
  };
  const auto scratch = std::make_unique_for_overwrite<T[]>(chunk(0).size());  // the largest
  for (int s = 0; s < n - 1; ++s) {
    const std::span<T> ours = chunk(r - s - 2);
    const std::span<T> incoming(scratch.get(), ours.size());
    exchange(transport, right, std::as_bytes(chunk(r - s - 1)), left,
             std::as_writable_bytes(incoming), Tag::reduce_scatter, named);
    reduce<T>(ours, incoming, reduction);
  }
  return chunk(r);
}

template std::span<float> reduce_scatter(Transport&, std::span<float>, Reduction, const Call&);
template std::span<double> reduce_scatter(Transport&, std::span<double>, Reduction, const Call&);
template std::span<int64_t> reduce_scatter(Transport&, std::span<int64_t>, Reduction, const Call&);

}  // namespace renkei::comm
