#pragma once

#include <functional>

#include "plan/search.h"

namespace renkei::plan {

// Changes a layout one thing at a time, as long as a change makes the step shorter: a cut, the
// replicas of a group, the micro-batches, the schedule, placement or sharding.
Evaluated refine(const Objective& objective, const SearchOptions& options, Evaluated start,
                 const std::function<bool()>& expired, int64_t& evaluations);

}  // namespace renkei::plan
