#include "plan/objective.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/evaluate.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

// Four equal ops in a row, costs for 4 samples.
graph::Graph chain(int64_t value_bytes) {
  graph::Graph graph{.batch = 4};
  graph.values = {{.id = "x"}};
  graph.inputs = {0};
  for (int i = 0; i < 4; ++i) {
    graph.values.push_back({.id = fmt::format("v{}", i), .bytes = value_bytes});
    graph.parameters.push_back({.id = fmt::format("p{}", i), .name = "", .bytes = 1 << 20});
    graph.ops.push_back({.id = fmt::format("op{}", i),
                         .inputs = {i},
                         .outputs = {i + 1},
                         .parameters = {i},
                         .forward_seconds = 4,
                         .backward_seconds = 8,
                         .backward_input_share = 0.5,
                         .saved_bytes = 1 << 20});
  }
  graph.outputs = {4};
  check_and_sort(graph, "chain");
  return graph;
}

const Layout kTwoStages{.schedule = ScheduleKind::one_f_one_b,
                        .micro_batches = 2,
                        .cuts = {0, 2, 4},
                        .replicas = {2, 1}};

TEST(Objective, TimesOfAStageAreItsOpsForTheLargestShareOfAMicroBatch) {
  const schedule::ScheduledSteps steps;
  const Problem problem = test::small_problem(chain(1000), 4, 6, false);
  const Objective objective(problem, steps);
  const Evaluated costs = objective.cost(kTwoStages);
  // Micro-batches of 3: the first of two replicas gets 2 samples, the single one 3.
  EXPECT_DOUBLE_EQ(costs.times[0].forward, 2 * 2);
  EXPECT_DOUBLE_EQ(costs.times[1].forward, 2 * 3);
  EXPECT_DOUBLE_EQ(costs.times[1].backward_input, 2 * 3);
  EXPECT_GT(costs.times[0].reduce, 0);
  EXPECT_EQ(costs.times[1].reduce, 0);
  EXPECT_EQ(costs.times[0].buckets, 2);
}

TEST(Objective, TransfersTakeTheLinkBetweenTheFarthestDevices) {
  const schedule::ScheduledSteps steps;
  const Problem problem = test::small_problem(chain(4'000'000), 4, 6, false);
  const Objective objective(problem, steps);
  const Evaluated costs = objective.cost(kTwoStages);
  // Ranks 0 and 1 are on the first node, 2 on the second; rank 2 gets 3 samples of 1 MB.
  EXPECT_DOUBLE_EQ(costs.times[0].send_forward, 10e-6 + 3e6 / 1e9);
  EXPECT_DOUBLE_EQ(costs.times[0].send_backward, 10e-6 + 3e6 / 1e9);
  Layout inside = kTwoStages;
  inside.replicas = {1, 1};
  EXPECT_DOUBLE_EQ(objective.cost(inside).times[0].send_forward, 2e-6 + 3e6 / 5e9);
}

TEST(Objective, SlowDevicesSetThePaceOfTheirGroup) {
  const schedule::ScheduledSteps steps;
  const Problem problem = test::small_problem(chain(1000), 4, 6, true);
  const Objective objective(problem, steps);
  EXPECT_DOUBLE_EQ(objective.cost(kTwoStages).times[1].forward, 2 * 2 * 3);  // half as fast
}

TEST(Objective, RecomputesOnlyWhatWouldNotFit) {
  const schedule::ScheduledSteps steps;
  Problem problem = test::small_problem(chain(1000), 4, 8, false);
  const double mebibyte = 1 << 20;
  Layout layout = kTwoStages;
  layout.replicas = {1, 1};
  layout.micro_batches = 4;
  const Evaluated roomy = Objective(problem, steps).cost(layout);
  EXPECT_EQ(roomy.recompute, (std::vector<bool>{false, false}));
  // The first stage has two micro-batches of 2 samples in flight: 2 MiB instead of 1 MiB.
  EXPECT_NEAR(roomy.memory[0].total() - roomy.memory[1].total(), mebibyte, 5000);
  problem.memory_bytes = static_cast<int64_t>(roomy.memory[1].total() + 5000);
  const Evaluated tight = Objective(problem, steps).cost(layout);
  EXPECT_EQ(tight.recompute, (std::vector<bool>{true, false}));
  EXPECT_TRUE(tight.fits());
  EXPECT_DOUBLE_EQ(tight.times[0].backward_input,
                   roomy.times[0].backward_input + roomy.times[0].forward);
  problem.memory_bytes = static_cast<int64_t>(6 * mebibyte);
  EXPECT_GT(Objective(problem, steps).cost(layout).missing_bytes, 0);
}

TEST(Objective, KnowsLayoutsThatAreImpossible) {
  const schedule::ScheduledSteps steps;
  const Problem problem = test::small_problem(chain(1000), 4, 6, false);
  const Objective objective(problem, steps);
  EXPECT_TRUE(objective.possible(kTwoStages));
  const auto impossible = [&](auto change) {
    Layout layout = kTwoStages;
    change(layout);
    return !objective.possible(layout);
  };
  EXPECT_TRUE(impossible([](Layout& l) { l.replicas = {3, 2}; }));
  EXPECT_TRUE(impossible([](Layout& l) { l.micro_batches = 4; }));
  EXPECT_TRUE(impossible([](Layout& l) { l.micro_batches = 6; }));  // one sample for two replicas
  EXPECT_TRUE(impossible([](Layout& l) { l.placement = Placement::apart; }));
  EXPECT_TRUE(impossible([](Layout& l) { l.schedule = ScheduleKind::accumulate; }));
  EXPECT_TRUE(impossible([](Layout& l) { l.chunks = 2; }));
}

}  // namespace
}  // namespace renkei::plan
