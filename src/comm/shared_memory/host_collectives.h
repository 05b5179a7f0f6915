// Collectives among the ranks of one host on buffers wherever they are. Notation: n ranks.
//
// Before the first barrier of an operation each rank writes a note for the others: for every part
// of its memory that others will read or write, where it is in the rank's arena (arena.h), or that
// it is private. After the barrier everyone knows everything.
//
//   all in arenas     Each rank reads what it needs from where it is and writes it to where it
//                     belongs; barrier. Allreduce: rank r reduces chunk r of all ranks' inputs into
//                     all ranks' outputs. No copy, in place or not.
//   private parts     travel in pieces through the window of SharedMemory: their owner copies a
//   piece
//                     into its slot, barrier, others read it. Slots alternate: one barrier a piece.
//   small parts       the same with one piece, copied before the first barrier: it is the only one.
#pragma once

#include <memory>
#include <vector>

#include "comm/group_collectives.h"
#include "comm/shared_memory/arena.h"
#include "comm/shared_memory/shared_allreduce.h"

namespace renkei::comm {

class HostCollectives : public GroupCollectives {
 public:
  // All ranks of the transport together, which are on one host. The arena is this rank's own (null:
  // all memory is private) and outlives this object, as does the transport.
  HostCollectives(Transport& transport, Arena* arena, const Call& call = {},
                  const SharedMemoryOptions& options = {});
  ~HostCollectives() override;

  void reduce(ConstBuffer from, Buffer into, Reduction reduction, std::optional<int> root,
              const Call& call) override;
  void reduce_scatter(const std::vector<const std::byte*>& from, Buffer into, Reduction reduction,
                      const Call& call) override;
  void exchange(const Parts& parts, uint64_t count, const Call& call) override;
  void barrier(const Call& call) override;

 private:
  struct Note;
  struct Part;
  class Lending;

  // Of the operation that comes next, or is under way; they alternate as the barrier's lines do.
  Note& note(int rank) const;
  Part& part(int owner, int reader) const;
  uint64_t place_of(const void* data, size_t bytes);  // 0: private
  std::byte* at(int owner, uint64_t place);
  bool all_shared() const;

  void reduce_directly(size_t count, DType dtype, Reduction reduction, std::optional<int> root);
  void share_around(const Parts& parts);
  void stage(const Parts& parts, size_t round, size_t turn) const;
  void fetch_staged(const Parts& parts, size_t round, size_t turn) const;
  void fetch_direct(const Parts& parts);
  void check_sizes(const Parts& parts, const Call& call) const;
  void reduce_scatter_staged(const std::vector<const std::byte*>& from, Buffer into,
                             const Operation& operation, bool entered, const Call& call);

  Transport& transport_;
  Arena* arena_;
  SharedMemory memory_;
  int n_, me_;
  std::shared_ptr<SharedRegion> notes_;
  std::vector<MemoryHandle> handles_;             // of the ranks' arenas
  std::vector<std::shared_ptr<MemoryMap>> maps_;  // of those that were needed
  uint64_t parity_ = 0;
  std::vector<std::span<const std::byte>> lent_;       // in the arena, to the operation under way
  std::vector<std::byte*> inputs_, outputs_, copies_;  // scratch of one operation
  std::vector<const std::byte*> sources_;
};

}  // namespace renkei::comm
