// Ring allreduce and its two halves (Patarasuk and Yuan, 2009). The n ranks stand on a ring in a
// given order; rank order[p] stands at place p. A buffer is cut into n chunks, one for each place,
// and a chunk into segments.
//
//   step s = 0 … 2n-3: send chunk (p - s - 1) to the right, receive chunk (p - s - 2) from the left
//   reduce-scatter     steps 0 … n-2: what arrives is reduced into ours
//   all-gather         steps n-1 … 2n-3: what arrives is complete
//
// Each rank sends 2 (n-1)/n of the buffer, which no algorithm can undercut, in 2 (n-1) steps, so it
// is the choice for large buffers and loses to halving-doubling on small ones. What arrives in one
// step leaves in the next, segment by segment: while one is reduced, the next ones are received and
// those before it are sent, also across the seam between the halves.
//
// Order of sums: chunk p begins at place p + 1 and is x(p+1) + x(p+2) + … + x(p), each rank adding
// its own to what arrives. It depends on the ring's order and on where an element lies, not on
// segments or timing. A chunk is completed by one rank and only copied from there, so all ranks
// hold the same bits.
#pragma once

#include <vector>

#include "comm/buffer/reduce.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

struct RingOptions {
  std::vector<int> order = {};  // a permutation of the ranks; empty: by rank
  size_t segment_bytes = 0;     // 0: kDefaultSegmentBytes
};

void ring_allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call,
                    const RingOptions& options = {});

// Leaves on rank r chunk_range(count, n, r), which is returned; the rest means nothing afterwards.
Buffer ring_reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction,
                           const Call& call, const RingOptions& options = {});

// parts[r] is what rank r contributes, already in its place; all others are received.
void ring_all_gather(Transport& transport, std::vector<Buffer> parts, const Call& call,
                     const RingOptions& options = {});

// What travels around a ring, so that a message need not be what lies in the buffer (see wire.h).
// Segment (c, g) is the g-th of the chunk of place c; its message has one place in memory.
class RingPayload {
 public:
  virtual ~RingPayload() = default;
  virtual size_t segments(int c) const = 0;
  virtual std::span<std::byte> message(int c, size_t g) = 0;
  virtual void before_send(int c, size_t g) = 0;  // of a partial result: fill the message
  virtual void reduce_arrival(int c, size_t g, std::span<std::byte> arrived) = 0;
  virtual void complete(int c, size_t g) = 0;       // all ranks are in it: fill the message
  virtual void after_receive(int c, size_t g) = 0;  // of a complete message
};

// Steps [begin, end) of the table above.
struct RingSteps {
  int begin;
  int end;
};
void run_ring(Transport& transport, RingPayload& payload, const std::vector<int>& order,
              RingSteps steps, const Call& call);

// `order`, or 0 … n-1 where it is empty. Throws a usage Error unless it is a permutation.
std::vector<int> checked_order(const std::vector<int>& order, int ranks);
int place_of(const std::vector<int>& order, int rank);

// The chunks of a buffer by place: the one at place p belongs to rank order[p].
std::vector<Buffer> chunks_by_place(Buffer buffer, const std::vector<int>& order);

}  // namespace renkei::comm
