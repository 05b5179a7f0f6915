#pragma once

#include <optional>

#include "plan/objective.h"
#include "plan/search.h"

namespace renkei::test {

// The best layout by trying all: every way to give each op a stage that no predecessor's comes
// after, every number of replicas, micro-batches, schedule, placement and sharding. Slow and
// simple.
std::optional<plan::Evaluated> best_of_all(const plan::Objective& objective,
                                           const plan::SearchOptions& options);

}  // namespace renkei::test
