// One collective on buffers of one type and size: how it is done, and what it must give.
#pragma once

#include <cstdint>

#include "comm/chunk_range.h"
#include "comm/communicator.h"

namespace renkei::bench {

// All methods but the last two are called by all ranks together. Broadcasts come from rank 0.
class CollectiveCase {
 public:
  // `other` is private memory of the same size and not the same memory.
  CollectiveCase(comm::Communicator& communicator, comm::Collective collective, comm::Buffer buffer,
                 comm::Buffer other, const comm::Call& call);

  void run();  // in place; all_to_all, which has no such form, from `other` into `buffer`
  void run_from_other();  // what the collective starts from is copied from `other` first

  // How many elements of the result are wrong, over all ranks. Leaves zeros in both buffers, so
  // that sums of sums which are timed afterwards do not grow.
  int64_t count_wrong();

  bool has_in_place() const { return collective_ != comm::Collective::all_to_all; }
  // busbw / algbw as in nccl-tests: makes different collectives and numbers of ranks comparable.
  double bus_factor() const;

 private:
  comm::Range result() const;
  float input_value(int rank, size_t i) const;
  float expected_value(size_t i) const;

  comm::Communicator& communicator_;
  comm::Collective collective_;
  comm::Buffer buffer_, other_;
  comm::Call call_;
  int ranks_, rank_;
};

}  // namespace renkei::bench
