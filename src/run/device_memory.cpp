#include "run/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "run/memory.h"

namespace renkei::run {

DeviceMemory::DeviceMemory(int64_t limit, const Held& held, int rank, const std::string& host)
    : limit_(limit), held_(held), rank_(rank), host_(host) {
  if (limit == 0) return;
  const int64_t for_tensors = limit - held.beside_tensors(), live = memory_use().live;
  if (for_tensors < live) fail(0, live);
  limit_memory(for_tensors);
}

DeviceMemory::~DeviceMemory() {
  if (limit_ > 0) limit_memory(0);
}

void DeviceMemory::throw_if_refused() const {
  if (const auto refusal = last_refusal()) fail(refusal->asked, refusal->live);
}

void DeviceMemory::fail(int64_t asked, int64_t live) const {
  limit_memory(0);
  const int64_t activations = std::max<int64_t>(0, live - held_.in_tensors);
  const int64_t needed = held_.beside_tensors() + live + asked;
  Error error(
      ErrorCode::memory,
      fmt::format("rank {} (host {}) needs {} where its device has {}: parameters {}, gradients "
                  "{}, optimizer {}, activations {}{}",
                  rank_, host_, format_size(needed), format_size(limit_),
                  format_size(held_.parameters), format_size(held_.gradients),
                  format_size(held_.optimizer), format_size(activations),
                  asked > 0 ? fmt::format(" and {} more", format_size(asked)) : ""),
      "--plan auto divides the network over the ranks (-n N) so that it fits, if it can; more "
      "--micro-batches or a smaller --batch leave fewer activations");
  error.rank = rank_;
  error.host = host_;
  throw error;
}

}  // namespace renkei::run
