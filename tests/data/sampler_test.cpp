#include "data/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/philox.h"
#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

// The samples of an epoch in the order of steps, and within a step in the order of ranks.
std::vector<int64_t> epoch_order(const SamplerOptions& options, int64_t epoch) {
  const Sampler sampler(options);
  std::vector<int64_t> samples;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step)
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Slice slice = sampler.slice(step, rank);
      for (int64_t position = slice.begin; position < slice.end; ++position)
        samples.push_back(sampler.sample(epoch, position));
    }
  return samples;
}

TEST(Sampler, TakesEverySampleOnceInTheSameOrderForAnyNumberOfRanks) {
  Random random(1, RandomUse::shuffle, 0, 0);
  for (int repeat = 0; repeat < 200; ++repeat) {
    SamplerOptions options{.count = 1 + random.below(500),
                           .global_batch = 1 + random.below(600),
                           .ranks = 1 + static_cast<int>(random.below(40)),
                           .seed = random()};
    const auto order = epoch_order(options, 2);
    options.ranks = 1;
    EXPECT_EQ(order, epoch_order(options, 2));

    auto sorted = order;
    std::ranges::sort(sorted);
    std::vector<int64_t> expected(static_cast<size_t>(options.count));
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(sorted, expected) << options.count << " samples, batch " << options.global_batch;
  }
}

TEST(Sampler, RunsOfNeighboursAreAnOrderToo) {
  Random random(4, RandomUse::shuffle, 0, 0);
  for (int repeat = 0; repeat < 200; ++repeat) {
    SamplerOptions options{.count = 1 + random.below(500),
                           .global_batch = 1 + random.below(600),
                           .ranks = 1 + static_cast<int>(random.below(40)),
                           .seed = random(),
                           .run = 1 + random.below(40)};
    const auto order = epoch_order(options, 2);
    options.ranks = 1;
    EXPECT_EQ(order, epoch_order(options, 2));
    auto samples = order;
    std::ranges::sort(samples);
    std::vector<int64_t> expected(static_cast<size_t>(options.count));
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(samples, expected) << options.count << " samples, runs of " << options.run;
  }
}

TEST(Sampler, RunsStayTogetherAndDifferFromEpochToEpoch) {
  const SamplerOptions options{.count = 1'000, .global_batch = 50, .run = 16};
  const auto first = epoch_order(options, 0), second = epoch_order(options, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(first[0] % 16, second[0] % 16);
  for (size_t i = 0; i + 1 < 992; ++i)
    EXPECT_TRUE(i % 16 == 15 || first[i + 1] == (first[i] + 1) % 1'000) << i;
  int jumps = 0;
  for (size_t i = 15; i + 1 < 992; i += 16) jumps += first[i + 1] != (first[i] + 1) % 1'000;
  EXPECT_GT(jumps, 50);  // of 61 places between runs
}

TEST(Sampler, SharesABatchEvenly) {
  Random random(2, RandomUse::shuffle, 0, 0);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const SamplerOptions options{.count = 1 + random.below(500),
                                 .global_batch = 1 + random.below(200),
                                 .ranks = 1 + static_cast<int>(random.below(40))};
    const Sampler sampler(options);
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      const Slice batch = sampler.batch(step);
      EXPECT_EQ(batch.size() < options.global_batch,
                step + 1 == sampler.steps_per_epoch() && options.count % options.global_batch != 0);
      for (int rank = 0; rank < options.ranks; ++rank) {
        const Slice slice = sampler.slice(step, rank);
        EXPECT_EQ(slice.begin, batch.begin + batch.size() * rank / options.ranks);
        EXPECT_EQ(slice.end, batch.begin + batch.size() * (rank + 1) / options.ranks);
      }
    }
  }
}

TEST(Sampler, LastBatchIsSmallerAndMayLeaveRanksEmpty) {
  const Sampler sampler({.count = 10, .global_batch = 8, .ranks = 4});
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  EXPECT_EQ(sampler.slice(0, 3), (Slice{6, 8}));
  EXPECT_EQ(sampler.slice(1, 0), (Slice{8, 8}));
  EXPECT_EQ(sampler.slice(1, 1), (Slice{8, 9}));
  EXPECT_EQ(sampler.slice(1, 2), (Slice{9, 9}));
  EXPECT_EQ(sampler.slice(1, 3), (Slice{9, 10}));
}

TEST(Sampler, ShufflesEveryEpochAnew) {
  const SamplerOptions options{.count = 100, .global_batch = 10};
  EXPECT_EQ(epoch_order(options, 0), epoch_order(options, 0));
  EXPECT_NE(epoch_order(options, 0), epoch_order(options, 1));
}

TEST(Sampler, KeepsTheOrderOfTheDataWithoutShuffle) {
  std::vector<int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(epoch_order({.count = 100, .global_batch = 7, .ranks = 3, .shuffle = false}, 5),
            expected);
}

TEST(Sampler, DoesNotOverflow) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const Sampler whole({.count = kLargest, .global_batch = kLargest, .ranks = 100000});
  EXPECT_EQ(whole.steps_per_epoch(), 1);
  EXPECT_EQ(whole.slice(0, 99999).end, kLargest);
  EXPECT_EQ(whole.slice(0, 0).end, kLargest / 100000);
  const Sampler small({.count = 3, .global_batch = kLargest});
  EXPECT_EQ(small.batch(0), (Slice{0, 3}));
}

TEST(Sampler, RefusesImpossibleOptions) {
  expect_error(ErrorCode::data, "no samples", [] { Sampler({.count = 0}); });
  expect_error(ErrorCode::usage, "batch", [] { Sampler({.count = 1, .global_batch = 0}); });
  expect_error(ErrorCode::usage, "ranks", [] { Sampler({.count = 1, .ranks = 0}); });
}

TEST(Sampler, RefusesPlacesThatDoNotExist) {
  const Sampler sampler({.count = 10, .global_batch = 5, .ranks = 2});
  expect_error(ErrorCode::bug, "step 2", [&] { sampler.slice(2, 0); });
  expect_error(ErrorCode::bug, "rank 2", [&] { sampler.slice(0, 2); });
  expect_error(ErrorCode::bug, "position 10", [&] { sampler.sample(0, 10); });
}

}  // namespace
}  // namespace renkei::data
