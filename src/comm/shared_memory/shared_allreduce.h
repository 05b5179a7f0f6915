// Collectives among the ranks of one host, through memory that they share. With n ranks and a
// buffer cut into n chunks of whole cache lines:
//
//   shared buffers    Barrier; rank r reads chunk r of all ranks, reduces it in rank order and
//                     writes it to all ranks in the same pass; barrier. No copy: every
//                     byte is read once and written once. Large chunks are worked on in blocks,
//                     and who is done helps the others.
//   private buffers   The same in pieces through a window that stays in the caches. In turn k a
//                     rank copies the others' chunks of piece k into its slot k mod 2; barrier; it
//                     copies the others' results of piece k - 1 out; it reduces its chunk of piece
//                     k into its result slot k mod 2. One barrier per piece.
//   small buffers     Every rank copies its buffer into a slot; barrier; every rank reduces all of
//                     it. Slots alternate, so that one barrier is enough.
//
// Sums are ((x_0 + x_1) + x_2) + … for every element, in every case: the same bits on all ranks.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "comm/buffer/chunk_range.h"
#include "comm/buffer/dtype.h"
#include "comm/buffer/reduce.h"
#include "comm/collectives/all_gather.h"
#include "comm/shared_memory/block_sharing.h"
#include "comm/shared_memory/node_barrier.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

struct SharedMemoryOptions {
  size_t piece_bytes = 512 << 10;  // of a private buffer, at a time
  size_t small_bytes = 8 << 10;    // of a private buffer, up to which every rank reduces everything
  // Of a shared buffer, from which on a rank that has done its chunk helps others with theirs: a
  // core that other programs use too, or one for two ranks, does not hold all up. Smaller buffers
  // stay in the cache of the core that works on them.
  size_t help_bytes = 8 << 20;
};

// For one thread of each rank at a time. All methods but owns() and copy_of() are collective among
// the ranks of the host and throw what NodeBarrier throws.
class SharedMemory {
 public:
  explicit SharedMemory(Transport& transport, const SharedMemoryOptions& options = {},
                        const Call& call = {});

  // At an orderly end: what was allocated here is gone, and nothing may be called any more.
  void close(const Call& call = {});

  int local_rank() const { return barrier_->local_rank(); }
  int local_size() const { return barrier_->local_size(); }

  // Zeroed memory of this rank that the others can address. It lives as long as this object.
  Buffer allocate(size_t count, DType dtype, const Call& call = {});

  // Memory that the ranks have in common, once; it is not for the operations below.
  Buffer allocate_once(size_t count, DType dtype, const Call& call = {});

  // Whether all of the buffer lies in memory from allocate().
  bool owns(const Buffer& buffer) const { return find(buffer).allocation != nullptr; }
  // The same elements of another rank's copy. Reading them needs a barrier.
  Buffer copy_of(int local_rank, const Buffer& mine) const;

  // In place. Shared buffers must be the same part of the same allocation on all ranks.
  void allreduce(Buffer buffer, Reduction reduction, const Call& call = {});

  // For shared buffers. Afterwards the chunk chunk_range(count, local_size(), local_rank()) of this
  // rank's buffer is the result, and the rest is as it was.
  void reduce_scatter(Buffer buffer, Reduction reduction, const Call& call = {});
  // For shared buffers. Every rank's chunk goes to all ranks.
  void all_gather(Buffer buffer, const Call& call = {});

  // A barrier at which all ranks must come with the same part of the same allocation.
  void meet(Buffer buffer, const Call& call = {});
  void barrier(const Call& call = {}) { barrier_->enter({}, call); }

  // For collectives that are made of these (host_collectives.h): buffers up to small_bytes(), and
  // of any size, wherever they are. `from` and `into` may be the same; without data in `into` the
  // result is not wanted here.
  size_t small_bytes() const { return options_.small_bytes; }
  void reduce_small(ConstBuffer from, Buffer into, const Operation& operation, const Call& call);
  void reduce_private(ConstBuffer from, Buffer into, const Operation& operation, const Call& call);
  NodeBarrier& node() { return *barrier_; }
  // Memory of piece_bytes() for each rank, of which two turns are in use at a time.
  size_t piece_bytes() const { return options_.piece_bytes; }
  std::byte* piece_slot(int local, size_t turn) const;
  size_t& turn() { return turn_; }
  BlockSharing& blocks() { return blocks_; }
  bool helps(size_t bytes) const { return bytes >= options_.help_bytes; }

 private:
  struct Allocation {
    std::shared_ptr<SharedRegion> region;
    std::vector<std::byte*> parts;  // by local rank
    size_t bytes = 0;
  };
  struct Location {
    const Allocation* allocation = nullptr;
    size_t offset = 0;
    uint64_t place = 0;  // the same number for the same part of the same allocation
  };

  Location find(const Buffer& buffer) const;
  Location must_find(const Buffer& buffer, OperationKind kind) const;
  void allreduce_shared(Buffer buffer, const Location& location, const Operation& operation,
                        const Call& call);
  // Of all ranks' buffers into each rank's, its own chunk or, `everywhere`, all of them.
  void reduce_chunks(Buffer buffer, const Allocation& allocation, Reduction reduction,
                     bool everywhere);
  // Some elements, which `mine` says where this rank has them.
  void reduce_block(Buffer mine, const Allocation& allocation, int owner, Reduction reduction,
                    bool everywhere);
  std::atomic<uint64_t>& taken_blocks(int local) const;  // of a rank's chunks, over all operations
  void reduce_piece(ConstBuffer piece, Buffer into, size_t turn, Reduction reduction);
  void copy_in(ConstBuffer piece, size_t turn);
  void copy_out(Buffer piece, size_t turn);

  // Slots of the window.
  std::byte* small_slot(int local, size_t turn) const;
  std::byte* result_slot(int local, size_t turn) const;

  Transport& transport_;
  SharedMemoryOptions options_;
  std::shared_ptr<SharedRegion> window_region_;
  std::vector<std::byte*> window_;  // of each local rank, after the barrier's part
  std::unique_ptr<NodeBarrier> barrier_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
  std::vector<std::shared_ptr<SharedRegion>> common_;  // from allocate_once()
  std::vector<const std::byte*> sources_;              // scratch of one rank's reductions
  std::vector<std::byte*> others_;                     // the same
  BlockSharing blocks_;
  size_t result_bytes_ = 0;  // of a result slot
  size_t turn_ = 0;          // pieces and ends of private buffers so far, over all operations
};

}  // namespace renkei::comm
