#pragma once

#include <functional>

#include "plan/search.h"

namespace renkei::plan {

// Branch and bound over all layouts of the space: stage by stage, each cut and number of replicas,
// leaving out what can't beat the best so far. Returns whether it came to its end within `nodes`;
// `best` is replaced by what is faster. `expired` ends it early.
bool search_exactly(const Objective& objective, const SearchOptions& options, int64_t nodes,
                    const std::function<bool()>& expired, std::optional<Evaluated>& best,
                    int64_t& evaluations);

// About how many layouts there are.
double count_layouts(const Objective& objective, const SearchOptions& options);

}  // namespace renkei::plan
