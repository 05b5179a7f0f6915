#include "plan/stage_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace renkei::plan {

std::vector<StageValues> stage_values(const graph::Graph& graph,
                                      const std::vector<int>& stage_of_op, int stages) {
  std::vector<StageValues> all(static_cast<size_t>(stages));
  const auto producer = graph::producers(graph);
  std::vector<int> last_use(graph.values.size(), -1);
  std::vector<bool> is_result(graph.values.size());
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    StageValues& stage = all[static_cast<size_t>(stage_of_op[op])];
    stage.ops.push_back(static_cast<graph::OpIndex>(op));
    for (const graph::ValueIndex input : graph.ops[op].inputs) {
      const auto i = static_cast<size_t>(input);
      if (producer[i] < 0) stage.loads = true;
      last_use[i] = std::max(last_use[i], stage_of_op[op]);
    }
  }
  for (const graph::ValueIndex output : graph.outputs)
    is_result[static_cast<size_t>(output)] = true;
  for (size_t value = 0; value < graph.values.size(); ++value) {
    if (producer[value] < 0) continue;
    const int made = stage_of_op[static_cast<size_t>(producer[value])];
    const auto index = static_cast<graph::ValueIndex>(value);
    for (int stage = made; stage < last_use[value]; ++stage) {
      all[static_cast<size_t>(stage)].outgoing.push_back(index);
      all[static_cast<size_t>(stage) + 1].incoming.push_back(index);
    }
    if (last_use[value] > made || is_result[value])
      all[static_cast<size_t>(made)].made.push_back(index);
  }
  return all;
}

std::vector<int> stage_of_ops(const Plan& plan, const graph::Graph& graph) {
  std::map<std::string, int> by_id;
  for (size_t stage = 0; stage < plan.stage_list.size(); ++stage)
    for (const std::string& op : plan.stage_list[stage].ops) by_id[op] = static_cast<int>(stage);
  std::vector<int> stages;
  for (const graph::Op& op : graph.ops) stages.push_back(by_id.at(op.id));
  return stages;
}

std::vector<int> segment_of_ops(const Plan& plan, const graph::Graph& graph) {
  std::map<std::string, int> by_id;
  int segment = 0;
  for (const Stage& stage : plan.stage_list) {
    size_t op = 0;
    for (const int count : stage.segments) {
      for (int i = 0; i < count; ++i) by_id[stage.ops[op++]] = segment;
      ++segment;
    }
    if (!stage.segments.empty()) continue;
    for (const std::string& id : stage.ops) by_id[id] = segment;
    ++segment;
  }
  std::vector<int> segments;
  for (const graph::Op& op : graph.ops) segments.push_back(by_id.at(op.id));
  return segments;
}

std::vector<int> stages_by_parameters(const graph::Graph& graph,
                                      const std::vector<std::vector<int>>& stages_of_parameter) {
  const auto before = graph::predecessors(graph);
  std::vector<int> stages(graph.ops.size(), 0);
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    int earliest = 0;
    for (const graph::OpIndex input : before[op])
      earliest = std::max(earliest, stages[static_cast<size_t>(input)]);
    // The first stage, not before the inputs, that has all parameters.
    std::vector<int> candidates;
    bool first = true;
    for (const graph::ParameterIndex parameter : graph.ops[op].parameters) {
      const auto& here = stages_of_parameter[static_cast<size_t>(parameter)];
      if (here.empty()) continue;  // training does not use it
      std::vector<int> both;
      if (first)
        both = here;
      else
        std::ranges::set_intersection(candidates, here, std::back_inserter(both));
      candidates = both;
      first = false;
    }
    if (first) {
      stages[op] = earliest;
      continue;
    }
    const auto found = std::ranges::lower_bound(candidates, earliest);
    if (found == candidates.end())
      throw Error(ErrorCode::data,
                  fmt::format("{} can't be evaluated by this plan: op {} ({}) uses parameters of a "
                              "stage before that of its inputs",
                              graph.name, graph.ops[op].id, graph.ops[op].name),
                  "evaluate it with --plan data");
    stages[op] = *found;
  }
  return stages;
}

}  // namespace renkei::plan
