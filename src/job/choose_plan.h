// Which plan does a training run follow? What --plan says: data, auto or a file.
#pragma once

#include <map>
#include <optional>
#include <string>

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
  std::map<std::string, torch::Tensor> samples = {};  // to measure with (run/op_costs.h)
};
// All ranks together: the first measures and searches, the others get its plan.
ChosenPlan choose_plan(const Settings& settings, const PlanInputs& inputs);

}  // namespace renkei::job
