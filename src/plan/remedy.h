#pragma once

#include <optional>

#include "plan/search.h"

namespace renkei::plan {

// What would make a problem that has no answer have one; each by itself.
struct Remedy {
  std::optional<int64_t> memory_bytes;  // of each device, to a hundredth
  std::optional<int> devices;           // of the same machine
  std::optional<int64_t> batch;         // smaller
};

// Takes no longer than the time limit, and then says what it has found so far.
Remedy find_remedy(const Problem& problem, const StepModel& steps, const SearchOptions& options);

}  // namespace renkei::plan
