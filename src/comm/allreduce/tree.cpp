#include "comm/allreduce/tree.h"

#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm {

void tree_reduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                 size_t segment_bytes) {
  const int64_t n = transport.size(), r = transport.rank();
  for (int64_t distance = 1; distance < n; distance *= 2) {
    const bool sends = (r & distance) != 0;
    if (!sends && r + distance >= n) continue;
    const int peer = static_cast<int>(sends ? r - distance : r + distance);
    exchange_and_reduce(transport, peer, sends ? buffer : Buffer(), sends ? Buffer() : buffer,
                        reduction, segment_bytes, Tag::tree, call);
    if (sends) return;
  }
}

void tree_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                    size_t segment_bytes) {
  tree_reduce(transport, buffer, reduction, call, segment_bytes);
  if (transport.rank() == 0) finish_mean(buffer, reduction, transport.size());
  tree_broadcast(transport, buffer, 0, call);
}

}  // namespace renkei::comm
