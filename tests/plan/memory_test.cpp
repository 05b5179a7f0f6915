#include "plan/memory.h"

#include <gtest/gtest.h>

namespace renkei::plan {
namespace {

// x → a → u → b → y for 2 samples; b keeps 40 bytes a sample.
graph::Graph two_ops() {
  graph::Graph graph{.batch = 2};
  graph.values = {{.id = "x", .bytes = 8}, {.id = "u", .bytes = 20}, {.id = "y", .bytes = 6}};
  graph.parameters = {{.id = "w", .name = "", .bytes = 100},
                      {.id = "v", .name = "", .bytes = 1000},
                      {.id = "mean", .name = "", .bytes = 10, .trainable = false}};
  graph.ops = {{.id = "a",
                .inputs = {0},
                .outputs = {1},
                .parameters = {0},
                .saved_bytes = 8,
                .workspace_bytes = 60},
               {.id = "b",
                .inputs = {1},
                .outputs = {2},
                .parameters = {1, 2},
                .saved_bytes = 80,
                .deferred_bytes = 30,
                .workspace_bytes = 10}};
  graph.inputs = {0};
  graph.outputs = {2};
  check_and_sort(graph, "test");
  return graph;
}

TEST(Memory, IsTheSumOfItsParts) {
  const graph::Graph graph = two_ops();
  const graph::Cuts cuts(graph, {op_seconds(graph)});
  const StageMemory b = stage_memory(
      cuts, 1, 2, {.samples = 3, .graph_batch = 2, .in_flight = {4, 4}, .optimizer_state = 2});
  EXPECT_EQ(b.parameters, 1010);
  EXPECT_EQ(b.gradients, 1000);
  EXPECT_EQ(b.optimizer, 2000);
  EXPECT_EQ(b.activations, 4 * 3 * (40 + 10));
  EXPECT_EQ(b.workspace, 15);
  EXPECT_EQ(b.buffers, 2 * (3 * 10));  // the outputs of the last stage go nowhere
  EXPECT_EQ(b.total(), 1010 + 1000 + 2000 + 600 + 15 + 60);
}

TEST(Memory, ShardingDividesTheOptimizerAmongTheReplicas) {
  const graph::Graph graph = two_ops();
  const graph::Cuts cuts(graph, {op_seconds(graph)});
  const MemoryOptions options{
      .graph_batch = 2, .replicas = 4, .sharded_optimizer = true, .optimizer_state = 2};
  const StageMemory all = stage_memory(cuts, 0, 2, options);
  EXPECT_EQ(all.optimizer, 2 * 1100 / 4.0);
}

TEST(Memory, RecomputeKeepsTheInputsOfEachMicroBatchAndEverythingOfOne) {
  const graph::Graph graph = two_ops();
  const graph::Cuts cuts(graph, {op_seconds(graph)});
  const StageMemory b = stage_memory(
      cuts, 1, 2, {.samples = 2, .graph_batch = 2, .in_flight = {5, 5}, .recompute = true});
  EXPECT_EQ(b.activations, 5 * 20 + 80);
}

TEST(Memory, AfterBackwardOnlyWhatGradientsOfParametersNeedIsKept) {
  const graph::Graph graph = two_ops();
  const graph::Cuts cuts(graph, {op_seconds(graph)});
  const StageMemory b =
      stage_memory(cuts, 1, 2, {.samples = 2, .graph_batch = 2, .in_flight = {5, 3}});
  EXPECT_EQ(b.activations, 3 * (20 + 80) + 2 * 30);
}

}  // namespace
}  // namespace renkei::plan
