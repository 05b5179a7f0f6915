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

struct ParameterSet {
  std::vector<int> stages, ranks;  // ascending
  std::vector<int> parameters;
};

// One for each stage, in order, then those of tied parameters. `trained[p]`: whether parameter p is
// updated; others are in no set.
std::vector<ParameterSet> parameter_sets(const std::vector<std::vector<int>>& ranks_of_stage,
                                         const std::vector<std::vector<int>>& stages_of,
                                         const std::vector<bool>& trained);

// The ranks of some stages, ascending.
std::vector<int> ranks_of(const std::vector<std::vector<int>>& ranks_of_stage,
                          const std::vector<int>& stages);

}  // namespace renkei::plan
