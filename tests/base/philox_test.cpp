#include "base/philox.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace renkei {
namespace {

static_assert(std::uniform_random_bit_generator<Random>);

constexpr int kDraws = 200000;

uint32_t first_of(uint64_t seed, RandomUse use, uint32_t epoch, uint64_t sample) {
  return Random(seed, use, epoch, sample)();
}

// The vectors are those of Random123's kat_vectors.
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, RepeatsItselfForTheSamePlace) {
  Random one(1, RandomUse::shuffle, 2, 3), other(1, RandomUse::shuffle, 2, 3);
  for (int draw = 0; draw < 100; ++draw) EXPECT_EQ(one(), other());
}

TEST(Random, DiffersInEachPartOfItsPlace) {
  std::set<uint32_t> firsts{first_of(1, RandomUse::shuffle, 2, 3),
                            first_of(2, RandomUse::shuffle, 2, 3),
                            first_of(uint64_t{1} << 32 | 1, RandomUse::shuffle, 2, 3),
                            first_of(1, RandomUse::dropout, 2, 3),
                            first_of(1, RandomUse::shuffle, 3, 3),
                            first_of(1, RandomUse::shuffle, 2, 4),
                            first_of(1, RandomUse::shuffle, 2, uint64_t{1} << 32 | 3)};
  EXPECT_EQ(firsts.size(), 7u);
}

TEST(Random, DoesNotRepeatABlock) {
  Random random(1, RandomUse::shuffle, 0, 0);
  std::set<std::vector<uint32_t>> blocks;
  for (int block = 0; block < 1000; ++block)
    blocks.insert({random(), random(), random(), random()});
  EXPECT_EQ(blocks.size(), 1000u);
}

// These bits are a promise: data sets and shuffles made by one version are made again by the next.
TEST(Random, KeepsItsStreamBetweenVersions) {
  Random random(2017, RandomUse::shuffle, 5, 123456789012);
  const uint64_t key = 2017 ^ 0x9E3779B97F4A7C15;
  for (uint32_t block = 0; block < 3; ++block)
    for (const uint32_t word : philox({block, 0xBE991A14, 0x1C, 5}, key)) EXPECT_EQ(random(), word);
}

TEST(Random, IsUniformInItsRange) {
  Random random(3, RandomUse::augmentation, 0, 0);
  double sum = 0, squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += value;
    squares += double{value} * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.003);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.003);
  for (int draw = 0; draw < 1000; ++draw) {
    const float value = random.uniform(-2, 3);
    ASSERT_GE(value, -2.0f);
    ASSERT_LE(value, 3.0f);
  }
}

TEST(Random, ReachesEveryNumberBelowItsLimitEquallyOften) {
  Random random(4, RandomUse::shuffle, 0, 0);
  for (uint32_t limit : {1u, 2u, 7u, 10u}) {
    std::vector<int> counts(limit);
    for (int draw = 0; draw < kDraws; ++draw) ++counts.at(random.below(limit));
    const double expected = double{kDraws} / limit;
    for (int count : counts) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
  }
}

TEST(Random, HasTheMomentsOfANormalDistribution) {
  Random random(5, RandomUse::random_input, 0, 0);
  double sum = 0, squares = 0, fourths = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double value = random.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.015);
  EXPECT_NEAR(fourths / kDraws, 3, 0.12);
}

}  // namespace
}  // namespace renkei
