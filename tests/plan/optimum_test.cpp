#include <gtest/gtest.h>

#include "schedule/evaluate.h"
#include "tests/plan/exhaustive.h"
#include "tests/plan/problems.h"

namespace renkei::plan {
namespace {

constexpr int kGraphs = test::kSanitized ? 100 : 1000;

struct Case {
  Problem problem;
  SearchOptions options;
};

// With few enough closed sets to try all layouts.
graph::Graph narrow_graph(const test::RandomGraphOptions& shape, Random& random) {
  constexpr size_t kMostSets = 150;
  while (true) {
    graph::Graph graph = random_graph(shape, random);
    if (graph::Cuts(graph, {op_seconds(graph)}, {.most_sets = 1000}).size() <= kMostSets)
      return graph;
  }
}

// Chains, forks and skips of up to 14 ops on up to 4 devices, with memory for all, some or no
// layouts, and some of the schedules, so that trying all stays possible.
Case random_case(int number) {
  Random random(2024, RandomUse::random_input, 0, static_cast<uint64_t>(number));
  const auto pick = [&](auto... choices) {
    const std::common_type_t<decltype(choices)...> list[] = {choices...};
    return list[random.below(sizeof...(choices))];
  };
  const int devices = pick(1, 2, 3, 4, 4);
  const bool chain = random.below(3) == 0;
  const uint32_t sizes = chain || devices < 4 ? 12 : 10;
  const test::RandomGraphOptions shape{.ops = static_cast<int>(3 + random.below(sizes)),
                                       .fork_share = chain ? 0 : 0.15,
                                       .skip_share = chain ? 0 : 0.3};
  const int64_t batch = pick(2, 3, 4, 6, 8, 12);
  Case result{.problem = test::small_problem(narrow_graph(shape, random), devices, batch,
                                             random.below(4) == 0)};
  result.options.schedules = {ScheduleKind::accumulate};
  result.options.schedules.push_back(
      pick(ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble));
  if (shape.ops <= 9) result.options.schedules.push_back(ScheduleKind::interleaved);
  result.options.chunks = {2};
  result.options.micro_batches = {1, static_cast<int>(batch % 2 == 0 ? 2 : batch)};
  if (batch >= 4) result.options.micro_batches.push_back(static_cast<int>(batch));
  if (random.below(2) == 0) result.options.sharded = {false};

  // Memory from too little for anything to plenty.
  double bytes = static_cast<double>(parameter_bytes(result.problem.graph));
  for (const graph::Op& op : result.problem.graph.ops)
    bytes += static_cast<double>(op.saved_bytes) * static_cast<double>(batch) / 4;
  result.problem.memory_bytes =
      static_cast<int64_t>(bytes * static_cast<double>(pick(0.4f, 0.8f, 1.2f, 2.0f, 6.0f)));
  return result;
}

TEST(Search, FindsTheOptimumOfAThousandRandomGraphs) {
  int fitting = 0, pipelines = 0, recomputed = 0, forked = 0;
  for (int number = 0; number < kGraphs; ++number) {
    const Case random = random_case(number);
    const schedule::ScheduledSteps steps;
    const Objective objective(random.problem, steps);
    ASSERT_TRUE(objective.cuts().complete()) << "case " << number;
    forked += !objective.cuts().linear();
    const auto expected = test::best_of_all(objective, random.options);
    const SearchResult found = search(objective, random.options);
    ASSERT_EQ(found.best.has_value(), expected.has_value()) << "case " << number;
    if (!expected) continue;
    ASSERT_TRUE(found.exact) << "case " << number;
    ASSERT_NEAR(found.best->seconds, expected->seconds, 1e-9 * expected->seconds)
        << "case " << number << ": " << describe(found.best->layout) << " instead of "
        << describe(expected->layout);
    EXPECT_TRUE(objective.evaluate(found.best->layout).fits());
    ++fitting;
    pipelines += found.best->layout.stages() > 1;
    for (const bool recompute : found.best->recompute) recomputed += recompute;
  }
  // The cases are of all kinds.
  EXPECT_GT(fitting, kGraphs / 2);
  EXPECT_LT(fitting, kGraphs);
  EXPECT_GT(pipelines, kGraphs / 5);
  EXPECT_GT(recomputed, kGraphs / 50);
  EXPECT_GT(forked, kGraphs / 5);
}

}  // namespace
}  // namespace renkei::plan
