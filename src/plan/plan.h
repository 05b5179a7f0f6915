#pragma once

#include <cstdint>
#include <map>
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
// the ranks; the first ones get one sample more when it does not divide. Where ops are divided too,
// `Plan::tensor` ranks that follow each other in the list have the same samples.
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
  int tensor = 1;    // ranks that compute each op of a replica together
  // How they divide it: strategies (shard/rules.h) by op, for those that are divided. Empty: as is
  // best on a machine of which nothing is known.
  std::map<std::string, std::string, std::less<>> tensor_ops = {};
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

PlanKind kind_of(int stages, int64_t replicas, int tensor);

// The ranks of each stage, and those that have the same part of its ops as this one of `tensor`.
std::vector<std::vector<int>> stage_ranks(const Plan& plan);
std::vector<std::vector<int>> stage_ranks(const Plan& plan, int tensor_index);

// With whom a rank computes ops together, itself among them.
struct TensorPlace {
  int index = 0;
  std::vector<int> ranks = {};
};
TensorPlace tensor_place(const Plan& plan, int rank);

// The plan file; docs/plan.md describes it.
nlohmann::json to_json(const Plan& plan);

}  // namespace renkei::plan
