#include "plan/parameter_sets.h"

#include <map>
#include <set>

namespace renkei::plan {

std::vector<std::vector<int>> stages_of_parameters(const graph::Graph& graph,
                                                   const std::vector<StageValues>& stages,
                                                   size_t parameters) {
  std::vector<std::vector<int>> stages_of(parameters);
  for (size_t s = 0; s < stages.size(); ++s) {
    std::set<int> used;
    for (const graph::OpIndex op : stages[s].ops)
      for (const graph::ParameterIndex p : graph.ops[static_cast<size_t>(op)].parameters)
        used.insert(p);
    for (const int p : used) stages_of[static_cast<size_t>(p)].push_back(static_cast<int>(s));
  }
  for (auto& users : stages_of)
    if (users.empty()) users.push_back(0);
  return stages_of;
}

std::vector<ParameterSet> parameter_sets(const std::vector<std::vector<int>>& ranks_of_stage,
                                         const std::vector<std::vector<int>>& stages_of,
                                         const std::vector<bool>& trained, const Sharing& sharing) {
  std::vector<ParameterSet> sets;
  for (size_t s = 0; s < ranks_of_stage.size(); ++s)
    sets.push_back({.stages = {static_cast<int>(s)},
                    .ranks = ranks_of(ranks_of_stage, {static_cast<int>(s)}),
                    .parameters = {}});
  std::map<std::pair<Share, std::vector<int>>, std::vector<int>> others;  // by share and stages
  for (size_t p = 0; p < stages_of.size(); ++p) {
    if (!trained[p]) continue;
    const auto parameter = static_cast<int>(p);
    const Share share = sharing.shares.empty() ? Share::own : sharing.shares[p];
    if (stages_of[p].size() == 1 && share == Share::own)
      sets[static_cast<size_t>(stages_of[p].front())].parameters.push_back(parameter);
    else
      others[{share, stages_of[p]}].push_back(parameter);
  }
  for (const auto& [key, parameters] : others) {
    const auto& [share, stages] = key;
    sets.push_back(
        {stages,
         ranks_of(share == Share::summed ? sharing.all_ranks_of_stage : ranks_of_stage, stages),
         parameters, share});
  }
  return sets;
}

std::vector<int> ranks_of(const std::vector<std::vector<int>>& ranks_of_stage,
                          const std::vector<int>& stages) {
  std::set<int> ranks;
  for (const int s : stages) {
    const auto& of_stage = ranks_of_stage[static_cast<size_t>(s)];
    ranks.insert(of_stage.begin(), of_stage.end());
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace renkei::plan
