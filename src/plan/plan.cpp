#include "plan/plan.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/json_fields.h"

namespace renkei::plan {

std::string_view name_of(PlanKind kind) {
  switch (kind) {
    case PlanKind::data:
      return "data";
    case PlanKind::pipeline:
      return "pipeline";
    case PlanKind::tensor:
      return "tensor";
    case PlanKind::hybrid:
      return "hybrid";
  }
  return "";
}

Plan data_parallel_plan(const BatchSizes& batch) {
  return {.kind = PlanKind::data, .replicas = batch.ranks, .batch = batch};
}

int Plan::ranks() const {
  std::set<int> ranks;
  for (const Stage& stage : stage_list) ranks.insert(stage.ranks.begin(), stage.ranks.end());
  return stage_list.empty() ? replicas : static_cast<int>(ranks.size());
}

Shape Plan::shape() const {
  return {.kind = parse_schedule(schedule),
          .stages = stages,
          .micro_batches = static_cast<int>(batch.accumulation),
          .chunks = chunks};
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json json{{"version", 1},
                      {"kind", name_of(plan.kind)},
                      {"stages", plan.stages},
                      {"replicas", plan.replicas},
                      {"tensor", plan.tensor},
                      {"ranks", plan.ranks()},
                      {"batch", plan.batch.global},
                      {"micro_batch", plan.batch.micro},
                      {"micro_batches", plan.batch.accumulation},
                      {"schedule", plan.schedule}};
  if (plan.stage_list.empty()) return json;
  json["chunks"] = plan.chunks;
  json["sharded_optimizer"] = plan.sharded_optimizer;
  nlohmann::json& stages = json["stage_list"] = nlohmann::json::array();
  for (const Stage& stage : plan.stage_list) {
    nlohmann::json ops = nlohmann::json::array();
    for (const std::string& op : stage.ops) ops.push_back(json_id(op));
    stages.push_back({{"ranks", stage.ranks},
                      {"recompute", stage.recompute},
                      {"loads", stage.loads},
                      {"ops", ops}});
    if (!stage.segments.empty()) stages.back()["segments"] = stage.segments;
  }
  return json;
}

}  // namespace renkei::plan
