#include "job/planned_network.h"

#include "graph/lowering.h"
#include "job/network_data.h"
#include "job/tensor_plans.h"
#include "networks/settings.h"
#include "rewrite/rewrite.h"

namespace renkei::job {

PlannedNetwork planned_network(const Settings& settings) {
  PlannedNetwork planned{.open = capture::open_network(settings), .loss = {}};
  planned.loss = loss_for_random_data(settings, planned.open.network);
  return planned;
}

graph::Graph estimated_graph(const Settings& settings) {
  const PlannedNetwork planned = planned_network(settings);
  return estimated_graph(settings, capture::programs_of(planned.open, planned.loss).training);
}

graph::Graph estimated_graph(const Settings& settings, const program::Program& training,
                             const shard::ShardOptions& part) {
  const bool divided = part.part.parts > 1;
  const shard::Sharded mine = divided ? shard::shard(training, part) : shard::Sharded();
  const program::Program& program = divided ? mine.program : training;
  graph::Graph graph =
      graph::lower(rewrite::rewrite(program, rewrite::rewrite_options(settings)).program, 1).graph;
  mark_summed(graph, mine.state);
  graph.name = networks::model_name(settings);
  graph.estimated = true;
  return graph;
}

}  // namespace renkei::job
