#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
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
  return stage_list.empty() ? replicas * tensor : static_cast<int>(ranks.size());
}

PlanKind kind_of(int stages, int64_t replicas, int tensor) {
  if (tensor > 1) return stages == 1 && replicas == 1 ? PlanKind::tensor : PlanKind::hybrid;
  if (stages == 1) return PlanKind::data;
  return replicas == 1 ? PlanKind::pipeline : PlanKind::hybrid;
}

std::vector<std::vector<int>> stage_ranks(const Plan& plan) {
  std::vector<std::vector<int>> ranks;
  for (const Stage& stage : plan.stage_list) ranks.push_back(stage.ranks);
  if (!ranks.empty()) return ranks;
  ranks.resize(1);
  for (int rank = 0; rank < plan.ranks(); ++rank) ranks[0].push_back(rank);
  return ranks;
}

std::vector<std::vector<int>> stage_ranks(const Plan& plan, int tensor_index) {
  std::vector<std::vector<int>> ranks;
  for (const std::vector<int>& all : stage_ranks(plan)) {
    ranks.emplace_back();
    for (size_t i = static_cast<size_t>(tensor_index); i < all.size();
         i += static_cast<size_t>(plan.tensor))
      ranks.back().push_back(all[i]);
  }
  return ranks;
}

TensorPlace tensor_place(const Plan& plan, int rank) {
  for (const std::vector<int>& ranks : stage_ranks(plan)) {
    const auto found = std::ranges::find(ranks, rank);
    if (found == ranks.end()) continue;
    const auto place = static_cast<int>(found - ranks.begin());
    const auto first = ranks.begin() + place / plan.tensor * plan.tensor;
    return {.index = place % plan.tensor, .ranks = {first, first + plan.tensor}};
  }
  throw Error(ErrorCode::usage, fmt::format("the plan has no stage for rank {}", rank),
              fmt::format("start it on {} ranks", plan.ranks()));
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
  if (!plan.tensor_ops.empty()) json["tensor_ops"] = plan.tensor_ops;
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
