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
#include "run/make_model.h"

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
  // The network before it was made fast, for plans that divide its operations; and the model of one
  // rank's part.
  const program::Program& program;
  comm::Communicator& communicator;
  run::ComputeOptions compute;
  // The model of one rank's part; none: operations can't be divided.
  std::function<run::Model(const shard::ShardOptions& part)> make_part = {};
  int threads = 1;  // of each rank
  bool quiet = false;
  bool own_values = false;  // each rank has its parameters for itself, and what an optimizer keeps
  std::vector<plan::ScheduleKind> schedules = {};  // to choose from; empty: what the settings say
  std::map<std::string, torch::Tensor> samples = {};  // to measure with (run/op_costs.h)
};
// All ranks together: the first measures and searches, the others get its plan.
ChosenPlan choose_plan(const Settings& settings, const PlanInputs& inputs);

// The part of the network that a rank computes by a plan.
shard::ShardOptions part_of_rank(const Settings& settings, const plan::Plan& plan, int rank);

}  // namespace renkei::job
