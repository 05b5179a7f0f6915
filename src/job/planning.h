// From settings, a graph and a machine to a problem of the planner, and from its answer to what is
// told about it: for `renkei plan` and `renkei train` alike.
#pragma once

#include "base/settings.h"
#include "plan/plan.h"
#include "plan/search.h"

namespace renkei::job {

struct PlanningRequest {
  graph::Graph graph;
  cluster::Description machine;
  int devices = 1;  // of the machine's
  int64_t batch = 1;
  int64_t memory_bytes = 0;         // of each device; 0: what the machine has
  double optimizer_state = 1;       // bytes for each byte of trainable parameters
  bool use_all_devices = false;     // there are these ranks, and each must get work
  bool ranks_share_memory = false;  // those of a node
};
plan::Problem planning_problem(const Settings& settings, PlanningRequest request);

// Shows how far it is, unless quiet; the progress is gone from the terminal afterwards.
plan::SearchResult search_with_progress(const plan::Objective& objective,
                                        plan::SearchOptions options, bool quiet);

// What the planner expects.
struct Predicted {
  double step_seconds = 0;
  double bubble = 0;                       // share of the step in which a rank waits for others
  std::vector<int64_t> memory_bytes = {};  // of each rank
};
Predicted predicted_by(const plan::Objective& objective, const plan::Evaluated& chosen);

}  // namespace renkei::job
