#pragma once

#include <functional>

#include "plan/search.h"

namespace renkei::plan {

// Branch and bound over all layouts of the space: stage by stage, each cut and number of replicas,
// leaving out what can't beat the best so far. Returns whether it came to its end; families with
// too many layouts are left out, and each may visit only so many nodes, whatever the others need.
// `best` is replaced by what is faster. `expired` ends it early.
bool search_exactly(const Objective& objective, const SearchOptions& options,
                    const std::function<bool()>& expired, std::optional<Evaluated>& best,
                    int64_t& evaluations);

}  // namespace renkei::plan
