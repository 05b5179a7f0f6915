// Counts the memory of this rank: constructed before training, asked after it.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "run/result.h"
#include "run/shared_parameters.h"

namespace renkei::run {

class MemoryCount {
 public:
  MemoryCount();
  void training_begins();
  MemoryBreakdown breakdown(const Held& held) const;

 private:
  int64_t libraries_ = 0;  // and whatever else there was before training, but for tensors
  int64_t files_;          // the part of it that is files
  int64_t tensors_before_ = 0;
};

// Of all ranks.
std::vector<MemoryBreakdown> exchange(const MemoryBreakdown& mine, comm::Communicator& communicator,
                                      const comm::Call& call);

}  // namespace renkei::run
