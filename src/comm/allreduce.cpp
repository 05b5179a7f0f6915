// Ring allreduce (Patarasuk and Yuan, 2009). The n ranks form a ring; a buffer is cut into n
// chunks.
//
//   reduce-scatter   step s: send chunk (r - s - 1), receive chunk (r - s - 2) and reduce it
//   all-gather       step s: send chunk (r - s), receive chunk (r - s - 1)
//
// Each rank sends 2 (n-1)/n of the buffer, which no algorithm can undercut, in 2 (n-1) steps, so
// it is the choice for large buffers and loses to halving-doubling on small ones. A chunk is
// completed on one rank and only copied from there, so all ranks hold the same bits.

#include "comm/allreduce.h"

#include <vector>

#include "comm/all_gather.h"
#include "comm/exchange.h"
#include "comm/reduce_scatter.h"

namespace renkei::comm {

template <typename T>
void allreduce(Transport& transport, std::span<T> buffer, Reduction reduction, const Call& call) {
  const Call named = with_name(call, "allreduce");
  const int n = transport.size();
  std::vector<size_t> counts;
  for (int r = 0; r < n; ++r) counts.push_back(chunk_range(buffer.size(), n, r).size());
  const std::span<T> own_chunk = reduce_scatter(transport, buffer, reduction, named);
  all_gather_v(transport, own_chunk, buffer, counts, named);
}

template void allreduce(Transport&, std::span<float>, Reduction, const Call&);
template void allreduce(Transport&, std::span<double>, Reduction, const Call&);
template void allreduce(Transport&, std::span<int64_t>, Reduction, const Call&);

}  // namespace renkei::comm
