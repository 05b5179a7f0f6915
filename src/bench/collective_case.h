// One collective on buffers of one type and size: how it is done, and what it must give.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/buffer/chunk_range.h"
#include "comm/communicator.h"

namespace renkei::bench {

// Which memory a collective works on.
enum class Buffers {
  once,     // from Communicator::allocate; the ranks of the host have the result once, in pieces:
            // each rank's buffer holds one, which all read there, as training does
  shared,   // from Communicator::allocate; every rank's buffer holds the result
  privates  // any
};
std::string_view name_of(Buffers buffers);

// All methods but the last two are called by all ranks together. Broadcasts come from rank 0.
class CollectiveCase {
 public:
  // `other` is private memory of the same size and not the same memory.
  CollectiveCase(comm::Communicator& communicator, comm::Collective collective, Buffers buffers,
                 comm::Buffer buffer, comm::Buffer other, const comm::Call& call);

  // A result once for all of the host needs memory that all ranks can read, and only an allreduce
  // has one that is the same for all.
  static bool exists(const comm::Communicator& communicator, comm::Collective collective,
                     Buffers buffers, comm::Buffer buffer);

  void run();  // in place; all_to_all, which has no such form, from `other` into `buffer`
  void run_from_other();  // what the collective starts from is copied from `other` first

  // How many elements of the result are wrong, over all ranks. Leaves zeros in both buffers, so
  // that sums of sums which are timed afterwards do not grow.
  int64_t count_wrong();

  bool has_in_place() const { return collective_ != comm::Collective::all_to_all; }
  // busbw / algbw as in nccl-tests: makes different collectives and numbers of ranks comparable.
  double bus_factor() const;

 private:
  // A part of the result, elements of the whole from `first` on, and where this rank reads it.
  struct Piece {
    size_t first;
    comm::Buffer place;
  };
  std::vector<Piece> result();
  float input_value(int rank, size_t i) const;
  float expected_value(size_t i) const;

  comm::Communicator& communicator_;
  comm::Collective collective_;
  bool once_;
  comm::Buffer buffer_, other_;
  comm::Call call_;
  int ranks_, rank_;
};

}  // namespace renkei::bench
