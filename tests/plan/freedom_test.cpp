// What must not change a plan, or not for the worse: more freedom, the order of a file, the limit
// of time, numbers of micro-batches that nobody asked for.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/remedy.h"
#include "plan/splits.h"
#include "schedule/evaluate.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

Random random_of(int number) {
  return {7, RandomUse::random_input, 0, static_cast<uint64_t>(number)};
}

// Chains and forks of up to 40 ops, too many for branch and bound, on up to 8 devices.
Problem random_problem(int number) {
  Random random = random_of(number);
  const bool chain = random.below(3) == 0;
  const test::RandomGraphOptions shape{.ops = static_cast<int>(12 + random.below(28)),
                                       .fork_share = chain ? 0 : 0.15,
                                       .skip_share = chain ? 0 : 0.2};
  const int devices = static_cast<int>(3 + random.below(6));
  const int64_t batch = std::vector<int64_t>{8, 12, 24, 60}[random.below(4)];
  graph::Graph graph = random_graph(shape, random);
  return test::small_problem(std::move(graph), devices, batch, random.below(4) == 0);
}

TEST(Search, GivesNoWorsePlanWhenMoreIsAllowed) {
  const int graphs = test::kSanitized ? 2 : 12;
  for (int number = 0; number < graphs; ++number) {
    const Problem problem = random_problem(number);
    const schedule::ScheduledSteps steps;
    const Objective objective(problem, steps);
    const double free = search(objective, {}).best->seconds;
    const auto expect_no_better = [&](const SearchOptions& forced) {
      const SearchResult result = search(objective, forced);
      if (!result.best) return;
      EXPECT_LE(free, result.best->seconds * (1 + 1e-12))
          << "graph " << number << ": " << describe(result.best->layout);
    };
    for (const ScheduleKind kind : SearchOptions{}.schedules)
      expect_no_better({.schedules = {kind}});
    for (int stages = 1; stages <= static_cast<int>(problem.devices.size()); ++stages)
      expect_no_better({.stages = stages});
  }
}

// Another topological order of the same graph.
graph::Graph shuffled(const graph::Graph& graph, Random& random) {
  graph::Graph other = graph;
  other.ops.clear();
  const auto before = predecessors(graph);
  std::vector<bool> placed(graph.ops.size());
  while (other.ops.size() < graph.ops.size()) {
    const size_t op = random.below(static_cast<uint32_t>(graph.ops.size()));
    const auto is_placed = [&](graph::OpIndex earlier) {
      return placed[static_cast<size_t>(earlier)];
    };
    if (placed[op] || !std::ranges::all_of(before[op], is_placed)) continue;
    placed[op] = true;
    other.ops.push_back(graph.ops[op]);
  }
  check_and_sort(other, "shuffled");
  return other;
}

TEST(Search, GivesTheSamePlanWhateverTheOrderOfTheOps) {
  int incomplete = 0;
  for (int number = 0; number < (test::kSanitized ? 2 : 12); ++number) {
    Random random = random_of(number);
    const test::RandomGraphOptions shape{.ops = 60, .fork_share = 0.3, .skip_share = 0.2};
    Problem problem = test::small_problem(random_graph(shape, random), 4, 24, false);
    const schedule::ScheduledSteps steps;
    const Objective objective(problem, steps);
    incomplete += !objective.cuts().complete();
    const SearchResult expected = search(objective, {});
    problem.graph = shuffled(problem.graph, random);
    const Objective again(problem, steps);
    const SearchResult found = search(again, {});
    EXPECT_EQ(found.best->seconds, expected.best->seconds) << "graph " << number;
    EXPECT_EQ(found.best->layout, expected.best->layout) << "graph " << number;
  }
  EXPECT_GT(incomplete, 0);  // cuts depend on an order only where not all are looked at
}

// A model of 40 equal layers that fits no device: with its gradients, three quarters of it do.
Problem large_problem(int devices) {
  graph::Graph graph = test::chain_graph(40);
  for (graph::Parameter& parameter : graph.parameters) parameter.bytes = 1 << 20;
  Problem problem = test::small_problem(std::move(graph), devices, 64, false);
  problem.memory_bytes = parameter_bytes(problem.graph) * 3 / 2;
  return problem;
}

TEST(Search, HasAPlanBeforeItsTimeBegins) {
  const Problem problem = large_problem(6);
  const schedule::ScheduledSteps steps;
  const SearchResult result = search(Objective(problem, steps), {.time_limit_seconds = 0});
  EXPECT_TRUE(result.timed_out);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_GT(result.best->layout.stages(), 1);
}

TEST(Splits, EndWhenTheirTimeDoes) {
  const Problem problem = large_problem(8);
  const schedule::ScheduledSteps steps;
  const Objective objective(problem, steps);
  const SplitOptions options{.micro_batches = 16, .units = 8, .most_stages = 8};
  int asked = 0;
  const auto all = propose_splits(objective, options, [&] { return ++asked < 0; });
  int left = asked / 2;
  const auto some = propose_splits(objective, options, [&] { return --left < 0; });
  EXPECT_LT(some.size(), all.size());
  EXPECT_GT(left, -8);  // it asks hardly again once the answer was yes
  for (const Split& split : some) EXPECT_EQ(std::ranges::count(all, split), 1);
}

TEST(Remedy, SaysOnlyWhatItHadTimeToFind) {
  Problem problem = large_problem(2);
  problem.memory_bytes /= 100;
  const schedule::ScheduledSteps steps;
  const Remedy remedy = find_remedy(problem, steps, {.time_limit_seconds = 0});
  EXPECT_FALSE(remedy.memory_bytes || remedy.devices || remedy.batch);
}

// 60 samples: 4 micro-batches are the fewest that fit, and are left out when the divisors of 60 are
// thinned out (1, 2, 3, 5, 10, …).
TEST(Search, TriesEveryNumberOfMicroBatchesThatDivides) {
  for (const int devices : {2, 65, 100}) {
    graph::Graph graph = test::chain_graph(4);
    for (graph::Op& op : graph.ops) op.forward_fixed_seconds = op.forward_seconds / 2;
    Problem problem = test::small_problem(std::move(graph), devices, 60L * devices, false);
    const schedule::ScheduledSteps steps;
    const Layout four{.micro_batches = 4, .cuts = {0, 4}, .replicas = {devices}};
    problem.memory_bytes =
        static_cast<int64_t>(Objective(problem, steps).cost(four).memory[0].total());
    const SearchResult result = search(
        Objective(problem, steps), {.schedules = {ScheduleKind::accumulate}, .sharded = {false}});
    EXPECT_EQ(result.best->layout.micro_batches, 4) << describe(result.best->layout);
    EXPECT_EQ(result.best->layout.replicas[0], devices);
  }
}

TEST(Search, LeavesDevicesOutThatWouldHaveNoSamples) {
  const Problem problem = test::small_problem(test::chain_graph(4), 100, 96, false);
  const schedule::ScheduledSteps steps;
  const SearchResult result =
      search(Objective(problem, steps), {.schedules = {ScheduleKind::accumulate}});
  EXPECT_EQ(result.best->layout.replicas[0] * result.best->layout.micro_batches, 96);
}

TEST(Search, SaysExactOnlyWhenEveryNumberOfMicroBatchesWasConsidered) {
  Random random = random_of(1);
  const graph::Graph graph = test::random_graph({.ops = 6}, random);
  const schedule::ScheduledSteps steps;
  for (const int64_t batch : {60, 6000}) {
    const Problem problem = test::small_problem(graph, 2, batch, false);
    const Objective objective(problem, steps);
    const SearchResult result = search(objective, {});
    EXPECT_EQ(result.exact, batch == 60);
    if (!result.exact) continue;
    for (const int m : all_micro_batches(batch, {}))
      EXPECT_LE(result.best->seconds, search(objective, {.micro_batches = {m}}).best->seconds);
  }
}

}  // namespace
}  // namespace renkei::plan
