#include "run/memory_count.h"

#include <algorithm>

#include "compute/scratch.h"
#include "run/memory.h"
#include "run/process_memory.h"

namespace renkei::run {

MemoryCount::MemoryCount()
    : libraries_(process_memory_bytes() - memory_use().held), files_(library_bytes()) {}

void MemoryCount::training_begins() {
  reset_peak_memory();
  tensors_before_ = memory_use().live;
}

MemoryBreakdown MemoryCount::breakdown(const Held& held) const {
  const MemoryUse use = memory_use();
  MemoryBreakdown memory{.parameters = held.parameters - held.shared_out,
                         .gradients = held.gradients,
                         .optimizer = held.optimizer,
                         .activations = use.peak - tensors_before_,
                         .peak = process_memory_bytes(),
                         .device = held.beside_tensors() + use.peak};
  const int64_t other_tensors = use.held - memory.activations - held.in_tensors;
  // Libraries that were loaded, or used for the first time, since the beginning.
  const int64_t loaded = std::max<int64_t>(0, library_bytes() - files_);
  memory.other = libraries_ + loaded + std::max<int64_t>(0, other_tensors) +
                 static_cast<int64_t>(compute::scratch_bytes());
  return memory;
}

std::vector<MemoryBreakdown> exchange(const MemoryBreakdown& mine, comm::Communicator& communicator,
                                      const comm::Call& call) {
  constexpr size_t kFields = 7;
  const auto ranks = static_cast<size_t>(communicator.transport().size());
  std::vector<MemoryBreakdown> all(ranks);
  all[static_cast<size_t>(communicator.transport().rank())] = mine;
  static_assert(sizeof(MemoryBreakdown) == kFields * sizeof(int64_t));
  communicator.allreduce(
      comm::Buffer(std::span(reinterpret_cast<int64_t*>(all.data()), kFields * ranks)),
      comm::Reduction::sum, call);
  return all;
}

}  // namespace renkei::run
