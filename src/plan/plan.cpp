#include "plan/plan.h"

#include <nlohmann/json.hpp>

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

nlohmann::json to_json(const Plan& plan) {
  return {{"version", 1},
          {"kind", name_of(plan.kind)},
          {"stages", plan.stages},
          {"replicas", plan.replicas},
          {"tensor", plan.tensor},
          {"batch", plan.batch.global},
          {"micro_batch", plan.batch.micro},
          {"micro_batches", plan.batch.accumulation},
          {"schedule", plan.schedule}};
}

}  // namespace renkei::plan
