// What a process group of a framework needs, made of four operations on buffers wherever they are.
// Ranks of one host do them in shared memory (shared_memory/host_collectives.h), ranks of several
// by messages (message_collectives.h). Every operation waits no longer than its Call says, and
// compares what the ranks call: different sizes, types or names end with an Error that names two
// ranks.
//
// After an Error the ranks are no longer in step: what is left is to destroy the object.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/buffer/reduce.h"
#include "comm/collectives/all_gather.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// What one rank sends to and gets from each rank, itself included, by rank; parts may be empty.
// Several parts to send may be the same memory.
struct Parts {
  std::vector<std::span<const std::byte>> to;
  std::vector<std::span<std::byte>> from;
};

class GroupCollectives {
 public:
  virtual ~GroupCollectives() = default;

  // into = from of rank 0 (reduction) from of rank 1 …, on all ranks or only on the root. Both may
  // be the same memory. Where no result is wanted, `into` is not looked at.
  virtual void reduce(ConstBuffer from, Buffer into, Reduction reduction, std::optional<int> root,
                      const Call& call) = 0;
  // Rank r gets the reduction of all ranks' parts r. from[r] has as many elements as `into`.
  virtual void reduce_scatter(const std::vector<const std::byte*>& from, Buffer into,
                              Reduction reduction, const Call& call) = 0;
  // Broadcast, gather, scatter, all-gather and all-to-all. `count` must be the same on all ranks;
  // sizes of parts must agree in any case.
  virtual void exchange(const Parts& parts, uint64_t count, const Call& call) = 0;
  virtual void barrier(const Call& call) = 0;
};

}  // namespace renkei::comm
