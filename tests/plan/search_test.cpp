#include "plan/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plan/remedy.h"
#include "schedule/evaluate.h"
#include "tests/plan/baselines.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

graph::Graph bert_large() {
  return test::network_graph("bert", {{"layers", "24"}, {"hidden", "1024"}, {"sequence", "512"}});
}

Problem network_problem(const std::string& name, int devices, int64_t batch) {
  Problem problem{.graph = name == "bert" ? bert_large() : test::network_graph(name),
                  .machine = cluster::load_description("flow-type2"),
                  .batch = batch};
  problem.devices = places(problem.machine, devices);
  return problem;
}

void expect_best_of_all_rules(const Problem& problem) {
  const schedule::ScheduledSteps steps;
  const Objective objective(problem, steps);
  const SearchOptions options;
  const SearchResult result = search(objective, options);
  const double found = result.best ? result.best->seconds : std::numeric_limits<double>::infinity();
  EXPECT_LE(result.lower_bound_seconds, found);
  const auto choices = micro_batch_choices(problem.batch, options);
  std::string gains;
  for (const test::Baseline& baseline :
       {test::equal_parameters(objective, choices), test::equal_times(objective, choices),
        test::pipedream(objective, choices), test::rannc(objective)}) {
    double best = std::numeric_limits<double>::infinity();
    for (const Layout& layout : baseline.layouts) {
      if (!objective.possible(layout)) continue;
      const Evaluated evaluated = objective.evaluate(layout);
      if (evaluated.fits()) best = std::min(best, evaluated.seconds);
    }
    EXPECT_LE(found, best * (1 + 1e-9)) << baseline.name;
    gains += fmt::format(" {:.2f} |", best / found);
  }
  // The table of docs/plan.md.
  if (std::getenv("RENKEI_PRINT_GAINS"))
    fmt::print("| {} | {} |{} {} |\n", problem.graph.name, problem.devices.size(), gains,
               result.best ? describe(result.best->layout) : "nothing fits");
}

TEST(Search, IsNeverWorseThanPublishedRules) {
  for (const std::string name : {"resnet50", "vgg16", "inception_v3", "bert"})
    for (const int devices : {2, 3, 8}) {
      if (test::kSanitized && devices > 3) break;
      SCOPED_TRACE(fmt::format("{} on {} devices", name, devices));
      Problem problem = network_problem(name, devices, 12 * devices);
      expect_best_of_all_rules(problem);
      // Not enough for the whole model, its gradients and the optimizer on one device.
      problem.memory_bytes = parameter_bytes(problem.graph) * 2;
      expect_best_of_all_rules(problem);
      problem.memory_bytes = 0;
      problem.machine.interconnect.link.bytes_per_second = 1e9;
      problem.machine.nodes[0].link.bytes_per_second = 2e9;
      expect_best_of_all_rules(problem);
    }
}

TEST(Search, GivesTheSameAnswerAgain) {
  const Problem problem = network_problem("bert", 8, 64);
  const schedule::ScheduledSteps steps;
  const Objective objective(problem, steps);
  const SearchResult first = search(objective, {}), second = search(objective, {});
  EXPECT_EQ(first.best->layout, second.best->layout);
  EXPECT_EQ(first.evaluations, second.evaluations);
}

TEST(Search, TakesWhatItIsTold) {
  const Problem problem = network_problem("resnet50", 6, 96);
  const schedule::ScheduledSteps steps;
  const Objective objective(problem, steps);
  const SearchResult result =
      search(objective, {.schedules = {ScheduleKind::gpipe}, .micro_batches = {8}, .stages = 3});
  EXPECT_EQ(result.best->layout.stages(), 3);
  EXPECT_EQ(result.best->layout.schedule, ScheduleKind::gpipe);
  EXPECT_EQ(result.best->layout.micro_batches, 8);
}

TEST(Search, TellsWhyOthersLost) {
  const Problem problem = network_problem("resnet50", 4, 64);
  const schedule::ScheduledSteps steps;
  const SearchResult result = search(Objective(problem, steps), {});
  ASSERT_FALSE(result.rejected.empty());
  for (const Alternative& alternative : result.rejected)
    if (alternative.evaluated.fits()) {
      EXPECT_GE(alternative.evaluated.seconds, result.best->seconds);
      EXPECT_NE(alternative.reason.find("% slower"), std::string::npos);
    }
}

TEST(Search, EndsAtItsTimeLimitWithTheBestSoFar) {
  const Problem problem = network_problem("resnet50", 16, 256);
  const schedule::ScheduledSteps steps;
  const SearchResult result = search(Objective(problem, steps), {.time_limit_seconds = 0});
  EXPECT_TRUE(result.timed_out);
  EXPECT_TRUE(result.best.has_value());
}

TEST(Search, SplitsAModelThatDoesNotFitOneDevice) {
  Problem problem = network_problem("bert", 4, 16);
  problem.memory_bytes = int64_t{3} << 29;  // 1.5 GiB; the parameters alone are 1.2 GiB
  const schedule::ScheduledSteps steps;
  const Objective objective(problem, steps);
  const SearchResult result = search(objective, {});
  ASSERT_TRUE(result.best.has_value());
  EXPECT_GT(result.best->layout.stages(), 1);
  for (const StageMemory& memory : result.best->memory)
    EXPECT_LE(memory.total(), static_cast<double>(problem.memory_bytes));
}

// What the remedy says fits, does; a little less does not.
TEST(Remedy, SaysHowMuchMemoryAndHowManyDevicesWouldFit) {
  Problem problem = network_problem("bert", 2, 8);
  problem.memory_bytes = int64_t{1} << 30;
  const schedule::ScheduledSteps steps;
  const SearchOptions options;
  ASSERT_FALSE(search(Objective(problem, steps), options).best.has_value());
  const Remedy remedy = find_remedy(problem, steps, options);
  ASSERT_TRUE(remedy.memory_bytes && remedy.devices);
  const auto fits = [&](int64_t memory, int devices) {
    Problem trial = problem;
    trial.memory_bytes = memory;
    trial.devices = places(trial.machine, devices);
    return search(Objective(trial, steps), options).best.has_value();
  };
  EXPECT_TRUE(fits(*remedy.memory_bytes, 2));
  EXPECT_FALSE(fits(*remedy.memory_bytes / 100 * 97, 2));
  EXPECT_TRUE(fits(problem.memory_bytes, *remedy.devices));
  EXPECT_FALSE(fits(problem.memory_bytes, *remedy.devices - 1));
}

}  // namespace
}  // namespace renkei::plan
