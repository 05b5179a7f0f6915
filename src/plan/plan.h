#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/batch.h"
#include "plan/step_model.h"

namespace renkei::plan {

enum class PlanKind { data, pipeline, tensor, hybrid };
std::string_view name_of(PlanKind kind);

// A stage: some ops of the model, computed by some ranks. Each micro-batch is divided evenly among
// the ranks; the first ones get one sample more when it does not divide.
struct Stage {
  std::vector<std::string> ops;  // ids in the graph, in topological order
  std::vector<int> ranks;
  bool recompute = false;          // forward again in backward, from what came in,
  std::vector<int> segments = {};  // segment by segment: so many of the ops each; none: in one
  bool loads = false;              // uses inputs of the graph (samples or targets)
};

// Who computes what. In a data-parallel plan without stages each rank holds the whole model.
struct Plan {
  PlanKind kind = PlanKind::data;
  int stages = 1;
  int replicas = 1;  // of the stage that has the most
  int tensor = 1;
  BatchSizes
      batch;  // `micro` is per rank of that stage, `accumulation` the micro-batches of a step
  std::string schedule = "accumulate";  // the generator in schedule/ that orders the work
  std::vector<Stage> stage_list = {};   // empty, or one for each stage
  int chunks = 1;                       // stages of each rank
  bool sharded_optimizer = false;       // each replica updates its share of the parameters

  int ranks() const;  // of all stages together
  Shape shape() const;
};

Plan data_parallel_plan(const BatchSizes& batch);

// The plan file; docs/plan.md describes it.
nlohmann::json to_json(const Plan& plan);

}  // namespace renkei::plan
