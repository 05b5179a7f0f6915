// Stages that are uneven by nature: forward and backward of different proportions, and devices of
// different speed.
#include <gtest/gtest.h>

#include "schedule/evaluate.h"
#include "tests/plan/baselines.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

// As in a recurrent translation model, some layers have a long forward and others a long backward.
graph::Graph lopsided_chain(int ops, Random& random) {
  graph::Graph graph = test::chain_graph(ops);
  for (graph::Op& op : graph.ops) {
    const bool forward = &op - graph.ops.data() < ops / 2;
    const auto scale = static_cast<double>(random.uniform(0.2f, 2.0f));
    op.forward_seconds = scale * (forward ? 4e-3 : 1e-3);
    op.backward_seconds = scale * (forward ? 2e-3 : 6e-3);
  }
  return graph;
}

TEST(Gpipe, WaitsForTheSlowestForwardAndTheSlowestBackward) {
  const Shape shape{.kind = ScheduleKind::gpipe, .stages = 2, .micro_batches = 5};
  const std::vector<StageTimes> stages{{.forward = 3, .backward_input = 1},
                                       {.forward = 1, .backward_input = 2, .backward_weight = 2}};
  const double expected = (3 + 1) + 4 * 3 + (1 + 4) + 4 * 4;
  EXPECT_DOUBLE_EQ(lower_bound(shape, stages), expected);
  EXPECT_DOUBLE_EQ(estimate(shape, stages), expected);
  EXPECT_DOUBLE_EQ(schedule::ScheduledSteps().step_seconds(shape, stages), expected);
}

TEST(Bounds, AreNeverLongerThanTheStep) {
  Random random(3, RandomUse::random_input, 0, 0);
  const schedule::ScheduledSteps steps;
  for (int round = 0; round < 400; ++round)
    for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                                    ScheduleKind::interleaved, ScheduleKind::zero_bubble}) {
      const int groups = static_cast<int>(2 + random.below(4));
      const int chunks = kind == ScheduleKind::interleaved ? 2 : 1;
      const Shape shape{kind, groups * chunks, groups * static_cast<int>(1 + random.below(4)),
                        chunks};
      std::vector<StageTimes> stages(static_cast<size_t>(shape.stages));
      double work = 0;
      for (StageTimes& stage : stages) {
        for (double* time : {&stage.forward, &stage.backward_input, &stage.backward_weight,
                             &stage.send_forward, &stage.send_backward, &stage.update})
          *time = static_cast<double>(random.uniform());
        work += stage.compute();
      }
      stages.back().send_forward = stages.back().send_backward = 0;
      const double seconds = steps.step_seconds(shape, stages) * (1 + 1e-12);
      EXPECT_LE(lower_bound(shape, stages), seconds) << name_of(kind);
      EXPECT_LE(least_seconds(shape, groups, work), seconds) << name_of(kind);
    }
}

TEST(Search, DividesForGpipeByItsOwnRule) {
  for (int number = 0; number < (test::kSanitized ? 2 : 10); ++number) {
    Random random(5, RandomUse::random_input, 0, static_cast<uint64_t>(number));
    const int devices = static_cast<int>(3 + random.below(6));
    const Problem problem =
        test::small_problem(lopsided_chain(48, random), devices, 8 * devices, false);
    const schedule::ScheduledSteps steps;
    const Objective objective(problem, steps);
    const SearchOptions options{.schedules = {ScheduleKind::gpipe}};
    const double found = search(objective, options).best->seconds;
    const auto choices = micro_batch_choices(problem.batch, options);
    for (test::Baseline rule : {test::equal_times(objective, choices),
                                test::pipedream(objective, choices), test::rannc(objective)})
      for (Layout& layout : rule.layouts) {
        layout.schedule = ScheduleKind::gpipe;
        if (!objective.possible(layout)) continue;
        const Evaluated other = objective.evaluate(layout);
        EXPECT_LE(found, other.seconds * (1 + 1e-9)) << rule.name;
      }
  }
}

// Half of the devices are `times` as fast as the others.
Problem mixed_problem(int devices, double times, double parameter_megabytes) {
  graph::Graph graph = test::chain_graph(60);
  for (graph::Parameter& parameter : graph.parameters)
    parameter.bytes = static_cast<int64_t>(parameter_megabytes * 1e6);
  Problem problem = test::small_problem(std::move(graph), devices, 16 * devices, true);
  problem.machine.kinds[1].flops_per_second = problem.machine.kinds[0].flops_per_second / times;
  return problem;
}

// Parameters are too large to be reduced often, so stages get as much as their devices can do.
TEST(Search, GivesFastDevicesMoreWork) {
  for (const int devices : {4, 8})
    for (const double times : {2.0, 10.0}) {
      const Problem problem = mixed_problem(devices, times, 20);
      const schedule::ScheduledSteps steps;
      const Objective objective(problem, steps);
      const SearchResult result = search(objective, {});
      // If speeds added up, as they do in the best of worlds.
      const double speed = devices / 2.0 * (1 + 1 / times);
      const double ideal = objective.least_work(static_cast<double>(problem.batch)) / speed;
      EXPECT_LT(result.best->seconds, 1.3 * ideal)
          << devices << " devices, " << times << ": " << describe(result.best->layout);
    }
}

TEST(Search, LeavesDevicesOutThatHardlyHelp) {
  const Problem problem = mixed_problem(4, 1000, 20);
  const schedule::ScheduledSteps steps;
  const SearchResult result = search(Objective(problem, steps), {});
  EXPECT_EQ(result.best->layout.devices(), 2) << describe(result.best->layout);
}

}  // namespace
}  // namespace renkei::plan
