// Which plan does a training run follow? What --plan says: data, auto or a file.
#pragma once

#include <optional>

#include "base/settings.h"
#include "comm/communicator.h"
#include "job/planning.h"
#include "plan/plan.h"
#include "run/compute_options.h"
#include "run/model.h"

namespace renkei::job {

struct ChosenPlan {
  plan::Plan plan;
  std::optional<Predicted> predicted;  // by the planner
};

// What is known before there is a network: wrong values are refused, auto gives a data-parallel
// plan for the time being.
plan::Plan expected_plan(const Settings& settings, int ranks);

struct PlanInputs {
  run::Model& model;
  comm::Communicator& communicator;
  run::ComputeOptions compute;
  int threads = 1;  // of each rank
  bool quiet = false;
  bool own_values = false;  // each rank has its parameters for itself, and what an optimizer keeps
  std::vector<plan::ScheduleKind> schedules = {};  // to choose from; empty: what the settings say
};
// All ranks together: the first measures and searches, the others get its plan.
ChosenPlan choose_plan(const Settings& settings, const PlanInputs& inputs);

}  // namespace renkei::job
