// The memory traffic that a collective on one host cannot avoid, done by the same kernels on memory
// of the rank's own, all ranks at once, without any exchange. With n ranks and b bytes:
//
//   allreduce        reads b/n of n buffers, writes it to all n, or to one if the ranks read the
//                    result where it is
//   reduce_scatter   reads b/n of n buffers, writes it to one
//   all_gather       copies the (n-1)/n of b that other ranks have
//   broadcast        copies b
//   all_to_all       copies b
#pragma once

#include <memory>

#include "bench/collective_case.h"
#include "comm/agreement.h"
#include "comm/buffer/dtype.h"

namespace renkei::bench {

class MemoryBound {
 public:
  MemoryBound(comm::Collective collective, comm::DType dtype, int ranks, size_t most_count);

  void run(size_t count, Buffers buffers);

 private:
  std::byte* place(int part, size_t bytes) const;

  comm::Collective collective_;
  comm::DType dtype_;
  int ranks_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace renkei::bench
