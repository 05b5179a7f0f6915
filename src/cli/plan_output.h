#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "job/tensor_plans.h"
#include "plan/plan.h"
#include "plan/search.h"
#include "schedule/evaluate.h"

namespace renkei::cli {

// What `renkei plan` has found, for people and for programs.
struct PlanReport {
  const plan::Objective& objective;
  const plan::SearchResult& result;  // with a best layout
  std::vector<job::Tried> tried;     // with other numbers of devices for each op
  plan::Plan plan;
  schedule::Evaluation evaluation;  // of the best layout, with events
};

std::string plan_for_people(const PlanReport& report);
nlohmann::json plan_for_programs(const PlanReport& report);

// The stage of each op of the graph, for the drawing.
std::vector<int> stage_of_ops(const PlanReport& report);

}  // namespace renkei::cli
