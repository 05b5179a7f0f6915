#include "tune/search.h"

#include <atomic>
#include <cmath>
#include <set>

#include "base/error.h"
#include "tests/base/temporary_directory.h"
#include "tests/tune/functions.h"

namespace renkei::tune {
namespace {

Objective objective_of(const test::Function& function) {
  return [&](const Point& point, double) -> std::optional<double> { return function.value(point); };
}

TEST(Search, BeatsRandomPointsOnKnownFunctions) {
  for (const auto& function : test::functions()) {
    int better = 0;
    constexpr int kSeeds = 9;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto trials =
          search(function.space, objective_of(function), {.sampler = {.seed = seed}, .trials = 80});
      double random = 1e300;
      for (int i = 0; i < 80; ++i)
        random = std::min(random, function.value(random_point(function.space, i, seed + 1000)));
      better += *best_of(trials)->loss < random ? 1 : 0;
    }
    EXPECT_GE(better, 6) << function.name;  // the same in every run: seeds decide everything
  }
}

TEST(Search, GoesOnFromItsJournalAsIfItHadNotEnded) {
  const auto function = test::functions()[0];
  const ::renkei::test::TemporaryDirectory directory;
  const auto whole = search(function.space, objective_of(function), {.trials = 40});
  std::atomic<int> calls = 0;
  const Objective counted = [&](const Point& point, double) -> std::optional<double> {
    ++calls;
    return function.value(point);
  };
  SearchOptions options{.trials = 25, .journal = directory / "journal.jsonl", .subject = "branin"};
  search(function.space, counted, options);
  options.trials = 40;
  const auto resumed = search(function.space, counted, options);
  EXPECT_EQ(calls, 40);
  ASSERT_EQ(resumed.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(resumed[i].loss, whole[i].loss) << i;
}

TEST(Search, AJournalOfOtherParametersIsRefused) {
  const ::renkei::test::TemporaryDirectory directory;
  const SearchOptions options{
      .trials = 2, .journal = directory / "journal.jsonl", .subject = "the same"};
  const auto functions = test::functions();
  search(functions[0].space, objective_of(functions[0]), options);
  EXPECT_THROW(search(functions[1].space, objective_of(functions[1]), options), Error);
}

TEST(Search, ParallelTrialsAreAsManyAndEachIsTriedOnce) {
  const auto function = test::functions()[1];
  const auto trials = search(function.space, objective_of(function), {.trials = 60, .parallel = 4});
  ASSERT_EQ(trials.size(), 60);
  std::set<Point> points;
  for (const Trial& trial : trials) {
    EXPECT_FALSE(trial.pending);
    points.insert(trial.point);
  }
  EXPECT_EQ(points.size(), 60);
}

TEST(Search, EndsByPatienceAndByTime) {
  const auto function = test::functions()[0];
  const Objective flat = [](const Point&, double) { return std::optional<double>(1); };
  EXPECT_EQ(search(function.space, flat, {.trials = 100, .patience = 12}).size(), 13);
  EXPECT_TRUE(search(function.space, flat, {.trials = 100, .seconds = -1}).empty());
}

TEST(Search, TriesWhatItIsGivenFirstAndSurvivesFailures) {
  const auto function = test::functions()[0];
  int calls = 0;
  const Objective unsteady = [&](const Point& point, double) -> std::optional<double> {
    if (++calls % 3 == 0) return std::nullopt;
    return function.value(point);
  };
  const Point first{{"x0", 1}, {"x1", 2}};
  const auto trials = search(function.space, unsteady, {.trials = 50, .first = {first}});
  EXPECT_EQ(trials[0].point, first);
  EXPECT_TRUE(best_of(trials));
  EXPECT_FALSE(best_of({}));
}

TEST(Search, ATrialMayTakeThreeTimesTheFastest) {
  const auto function = test::functions()[0];
  double shortest = 1e300;
  const Objective limited = [&](const Point&, double seconds) {
    shortest = std::min(shortest, seconds);
    return std::optional<double>(1);
  };
  search(function.space, limited, {.trials = 3});
  EXPECT_LT(shortest, 2);
  EXPECT_GE(shortest, 1);
}

TEST(Importance, TheParameterThatMattersComesFirst) {
  Space space = test::box(2, 0, 1);
  space.parameters.push_back({.name = "kind", .kind = Kind::choice, .choices = {"a", "b"}});
  std::vector<Trial> trials;
  for (int i = 0; i < 200; ++i) {
    const Point point = random_point(space, i, 1);
    trials.push_back({.number = i, .point = point, .loss = 10 * point.at("x1") + point.at("kind")});
  }
  const auto shares = importance(space, trials);
  EXPECT_EQ(shares[0].first, "x1");
  EXPECT_GT(shares[0].second, 0.8);
  EXPECT_LT(shares[2].second, 0.1);
}

}  // namespace
}  // namespace renkei::tune
