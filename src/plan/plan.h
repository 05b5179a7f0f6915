#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "plan/batch.h"

namespace renkei::plan {

enum class PlanKind { data, pipeline, tensor, hybrid };
std::string_view name_of(PlanKind kind);

// Who computes what. So far each rank holds the whole model (data parallel): one stage, as many
// replicas as ranks.
struct Plan {
  PlanKind kind = PlanKind::data;
  int stages = 1;
  int replicas = 1;
  int tensor = 1;
  BatchSizes batch;
  std::string schedule = "accumulate";  // the generator in schedule/ that orders the work
};

Plan data_parallel_plan(const BatchSizes& batch);

nlohmann::json to_json(const Plan& plan);

}  // namespace renkei::plan
