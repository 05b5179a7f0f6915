// What the stages of a plan compute, and which values pass from one to the next.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"

namespace renkei::plan {

// A value that is used several stages later is passed on by those in between. Inputs of the graph
// are not passed on: each stage loads what it needs.
struct StageValues {
  std::vector<graph::OpIndex> ops;          // in topological order
  std::vector<graph::ValueIndex> incoming;  // from the stage before
  std::vector<graph::ValueIndex> outgoing;  // to the stage behind; made here or passed on
  std::vector<graph::ValueIndex> made;      // here, and outgoing or results of the graph
  bool loads = false;                       // it uses inputs of the graph
};

std::vector<StageValues> stage_values(const graph::Graph& graph,
                                      const std::vector<int>& stage_of_op, int stages);

// The stage of each op of the graph that the plan was made for (see check_against).
std::vector<int> stage_of_ops(const Plan& plan, const graph::Graph& graph);

// Segments of all stages in their order, numbered throughout; a stage without any is one.
std::vector<int> segment_of_ops(const Plan& plan, const graph::Graph& graph);

// For another graph of the same model, as evaluation has one: an op goes where its parameters are,
// `stages_of_parameter[p]` ascending, and otherwise where its inputs come from. Throws a data Error
// when values would have to flow back.
std::vector<int> stages_by_parameters(const graph::Graph& graph,
                                      const std::vector<std::vector<int>>& stages_of_parameter);

}  // namespace renkei::plan
