#include "comm/allreduce/hierarchical.h"

#include <algorithm>

#include "base/error.h"
#include "comm/allreduce/ring.h"
#include "comm/allreduce/tree.h"
#include "comm/buffer/chunk_range.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"
#include "comm/transport/sub_transport.h"

namespace renkei::comm {
namespace {

class InsideByMessages : public InsideHost {
 public:
  InsideByMessages(Transport& host_ranks, AllreduceFunction inner, size_t segment_bytes)
      : host_ranks_(host_ranks), inner_(std::move(inner)), segment_bytes_(segment_bytes) {}

  void reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) override {
    if (inner_)
      inner_(host_ranks_, buffer, reduction, call);
    else
      ring_reduce_scatter(host_ranks_, buffer, reduction, call, {.segment_bytes = segment_bytes_});
  }
  void all_gather(Buffer buffer, const Call& call) override {
    ring_all_gather(host_ranks_, chunks_by_place(buffer, checked_order({}, host_ranks_.size())),
                    call, {.segment_bytes = segment_bytes_});
  }
  void reduce(Buffer buffer, Reduction reduction, const Call& call) override {
    if (inner_)
      inner_(host_ranks_, buffer, reduction, call);
    else
      tree_reduce(host_ranks_, buffer, reduction, call, segment_bytes_);
  }
  void broadcast(Buffer buffer, const Call& call) override {
    comm::broadcast(host_ranks_, buffer, 0, call, Check::nothing);
  }

 private:
  Transport& host_ranks_;
  AllreduceFunction inner_;
  size_t segment_bytes_;
};

}  // namespace

std::unique_ptr<InsideHost> inside_host_by_messages(Transport& host_ranks, AllreduceFunction inner,
                                                    size_t segment_bytes) {
  return std::make_unique<InsideByMessages>(host_ranks, std::move(inner), segment_bytes);
}

void hierarchical_allreduce(Transport& transport, InsideHost& inside,
                            const std::vector<std::vector<int>>& by_host, Buffer buffer,
                            Reduction reduction, const AllreduceFunction& outer, bool gather,
                            const Call& call) {
  const int r = transport.rank();
  size_t local = 0;  // our number inside the host
  bool even = true;
  for (const std::vector<int>& ranks : by_host) {
    even = even && ranks.size() == by_host[0].size();
    const auto found = std::find(ranks.begin(), ranks.end(), r);
    if (found != ranks.end()) local = static_cast<size_t>(found - ranks.begin());
  }
  const Reduction partial = reduction == Reduction::mean ? Reduction::sum : reduction;
  const auto between = [&](Buffer part) {
    std::vector<int> rail;
    for (const std::vector<int>& ranks : by_host) rail.push_back(ranks[local]);
    SubTransport peers(transport, rail, channels::kBetweenHosts);
    outer(peers, part, partial, call);
    finish_mean(part, reduction, transport.size());
  };
  if (even) {
    inside.reduce_scatter(buffer, partial, call);
    const Range own =
        chunk_range(buffer.count, static_cast<int>(by_host[0].size()), static_cast<int>(local));
    between(buffer.part(own.begin, own.size()));
    if (gather) inside.all_gather(buffer, call);
  } else {
    inside.reduce(buffer, partial, call);
    if (local == 0) between(buffer);
    inside.broadcast(buffer, call);
  }
}

}  // namespace renkei::comm
