// Which parameters are reduced and updated together: those of a stage, by its replicas, and those
// that several stages use (tied), by the replicas of all of these.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/stage_values.h"

namespace renkei::plan {

// For each parameter and buffer of the graph, the stages that use it, ascending. What nothing uses
// belongs to the first.
std::vector<std::vector<int>> stages_of_parameters(const graph::Graph& graph,
                                                   const std::vector<StageValues>& stages,
                                                   size_t parameters);

// What the ranks of a tensor group have of a parameter.
enum class Share {
  own,     // a part of its own, or there is no group
  equal,   // all have the same, and the same gradient
  summed,  // all have the same, and shares of the gradient
};

struct ParameterSet {
  std::vector<int> stages, ranks;  // ascending
  std::vector<int> parameters;
  Share share = Share::own;
};

// One for each stage, in order, then those of tied parameters, and of those that a tensor group has
// in common. `trained[p]`: whether parameter p is updated; others are in no set. `shares` may be
// empty: all are own. `ranks_of_stage` are the ranks with the same part; summed parameters are
// reduced over `all_ranks_of_stage`.
struct Sharing {
  std::vector<Share> shares = {};
  std::vector<std::vector<int>> all_ranks_of_stage = {};
};
std::vector<ParameterSet> parameter_sets(const std::vector<std::vector<int>>& ranks_of_stage,
                                         const std::vector<std::vector<int>>& stages_of,
                                         const std::vector<bool>& trained,
                                         const Sharing& sharing = {});

// The ranks of some stages, ascending.
std::vector<int> ranks_of(const std::vector<std::vector<int>>& ranks_of_stage,
                          const std::vector<int>& stages);

}  // namespace renkei::plan
