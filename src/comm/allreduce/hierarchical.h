// Hierarchical allreduce: inside each host, between the hosts, inside again. H hosts with L ranks
// each; the i-th ranks of all hosts form rail i.
//
//   1  reduce-scatter inside each host: its rank i has chunk i of the host's sum
//   2  allreduce of chunk i on rail i, all rails at once
//   3  all-gather inside each host, unless each rank needs its chunk only
//
// 2 (H-1)/H of the buffer leaves a host, over all its rails together, each of which carries 1/L of
// it. A flat ring whose ranks are interleaved over the hosts sends L times as much; one in a good
// order about as much, but in 2 (H L - 1) steps between hosts instead of 2 (H-1). Where hosts have
// different numbers of ranks there are no rails, and only one rank per host, the leader, talks to
// other hosts: reduce to the leader, allreduce among the leaders, broadcast.
//
// Order of sums: as the inner algorithm sums a host, then as the outer one sums the hosts. So it
// depends on the layout; for bits that do not, there is reproducible.h. A mean is divided once,
// after step 2. All ranks of a rail leave step 2 with the same bits, which step 3 copies.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// What happens inside a host, so that it can be done over messages or in shared memory. Chunks are
// those of chunk_range over the host's ranks, in the order of local_ranks().
class InsideHost {
 public:
  virtual ~InsideHost() = default;
  virtual void reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) = 0;
  virtual void all_gather(Buffer buffer, const Call& call) = 0;
  // To and from the host's first rank.
  virtual void reduce(Buffer buffer, Reduction reduction, const Call& call) = 0;
  virtual void broadcast(Buffer buffer, const Call& call) = 0;
};

using AllreduceFunction = std::function<void(Transport&, Buffer, Reduction, const Call&)>;

// Over messages. With an inner algorithm, that sums the host's buffers and each rank takes its
// chunk; without one, it is the ring's reduce-scatter, or the tree's reduce towards a leader.
std::unique_ptr<InsideHost> inside_host_by_messages(Transport& host_ranks,
                                                    AllreduceFunction inner = nullptr,
                                                    size_t segment_bytes = 0);

// `by_host`: the ranks of each host (topology.h), the same on every rank. `outer` is called for
// sum, max or min, with the ranks of a rail or with the leaders. Without `gather` the result is in
// this rank's chunk, and the rest of the buffer means nothing.
void hierarchical_allreduce(Transport& transport, InsideHost& inside,
                            const std::vector<std::vector<int>>& by_host, Buffer buffer,
                            Reduction reduction, const AllreduceFunction& outer, bool gather,
                            const Call& call);

}  // namespace renkei::comm
