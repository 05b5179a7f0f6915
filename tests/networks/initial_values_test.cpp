#include "networks/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checksum.h"
#include "base/error.h"
#include "base/philox.h"
#include "networks/layers.h"

namespace renkei::networks {
namespace {

std::vector<float> drawn(size_t count, const InitialPart& part, int threads = 1) {
  std::vector<float> values(count);
  fill_initial(values, part, threads);
  return values;
}

struct Moments {
  double mean, deviation, fourth;  // the last: of values over the deviation
};

Moments moments(const std::vector<float>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0, fourths = 0;
  for (const float value : values) {
    squares += std::pow(value - mean, 2);
    fourths += std::pow(value - mean, 4);
  }
  const double variance = squares / count;
  return {mean, std::sqrt(variance), fourths / count / variance / variance};
}

// The share of the values of a normal distribution below the value.
double normal_share(double value) {
  return 0.5 * std::erfc(-value / std::sqrt(2.0));
}

// Of sorted values, the largest distance from the distribution function (Kolmogorov, Smirnov).
template <class Function>
double distance(std::vector<float> values, Function share_below) {
  std::ranges::sort(values);
  double most = 0;
  for (size_t i = 0; i < values.size(); ++i)
    most =
        std::max(most, std::abs(share_below(values[i]) - (static_cast<double>(i) + 0.5) /
                                                             static_cast<double>(values.size())));
  return most;
}

constexpr size_t kMany = 1'000'000;
constexpr double kDistance = 1.95e-3;  // exceeded once in a thousand samples of a million

TEST(InitialValues, AreUniform) {
  const auto values = drawn(kMany, {.seed = 3, .name = "a", .initial = uniform_by_inputs(100)});
  EXPECT_LT(distance(values, [](double x) { return (x + 0.1) / 0.2; }), kDistance);
  EXPECT_GE(*std::ranges::min_element(values), -0.1f);
  EXPECT_LT(*std::ranges::max_element(values), 0.1f);
}

TEST(InitialValues, AreNormal) {
  const auto values = drawn(kMany, {.seed = 3, .name = "a", .initial = normal(0.02)});
  const Moments found = moments(values);
  EXPECT_NEAR(found.mean, 0, 5 * 0.02 / 1000);
  EXPECT_NEAR(found.deviation, 0.02, 5 * 0.02 / 1000);
  EXPECT_NEAR(found.fourth, 3, 0.03);
  EXPECT_LT(distance(values, [](double x) { return normal_share(x / 0.02); }), kDistance);
  EXPECT_GT(*std::ranges::max_element(values), 4 * 0.02f);  // they have tails
}

TEST(InitialValues, AreCutOffAtTwo) {
  const auto wide = drawn(kMany, {.seed = 3, .name = "a", .initial = truncated_normal(1.5)});
  EXPECT_LE(*std::ranges::max_element(wide), 2);
  EXPECT_GE(*std::ranges::min_element(wide), -2);
  const double below = normal_share(-2 / 1.5), kept = 1 - 2 * below;
  EXPECT_LT(distance(wide, [&](double x) { return (normal_share(x / 1.5) - below) / kept; }),
            kDistance);
  const auto narrow = drawn(kMany, {.seed = 3, .name = "a", .initial = truncated_normal(0.1)});
  EXPECT_NEAR(moments(narrow).deviation, 0.1, 5 * 0.1 / 1000);
}

TEST(InitialValues, OfAPartAreThoseOfTheWhole) {
  for (const Initial& initial : {uniform_by_inputs(9), normal(1), truncated_normal(0.1)}) {
    const InitialPart whole{.seed = 5, .name = "conv1.weight", .initial = initial};
    const auto all = drawn(1000, whole);
    for (const int64_t begin : {0, 1, 63, 64, 65, 500, 999})
      for (const size_t count : {0, 1, 64, 100, 1000}) {
        if (static_cast<size_t>(begin) + count > all.size()) continue;
        InitialPart part = whole;
        part.begin = begin;
        EXPECT_EQ(
            drawn(count, part),
            std::vector(all.begin() + begin, all.begin() + begin + static_cast<int64_t>(count)));
      }
  }
}

TEST(InitialValues, AreTheSameForAnyNumberOfThreads) {
  const InitialPart part{.seed = 5, .name = "fc.weight", .initial = normal(1)};
  const auto alone = drawn(1'000'003, part);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(drawn(1'000'003, part, threads), alone);
}

TEST(InitialValues, DependOnSeedAndName) {
  const InitialPart part{.seed = 5, .name = "fc.weight", .initial = normal(1)};
  InitialPart other_seed = part, other_name = part;
  other_seed.seed = 6;
  other_name.name = "fc.bias";
  EXPECT_EQ(drawn(100, part), drawn(100, part));
  EXPECT_NE(drawn(100, part), drawn(100, other_seed));
  EXPECT_NE(drawn(100, part), drawn(100, other_name));
}

// Number j of a block of 64 is word j / 16 of call j % 16 of the generator.
uint32_t word_of(uint64_t seed, const char* name, int64_t place) {
  const uint64_t hash = Checksum().add(name).value();
  const auto call = static_cast<uint32_t>(place / 64 * 16 + place % 16);
  const uint64_t use = static_cast<uint32_t>(RandomUse::initial_value);
  const PhiloxBlock words =
      philox({call, 0, static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)},
             seed ^ (use * 0x9E3779B97F4A7C15));
  return words[static_cast<size_t>(place % 64 / 16)];
}

TEST(InitialValues, ComeFromTheGeneratorByTheirPlace) {
  const InitialPart uniform{.seed = 1, .name = "w", .initial = {Initial::Kind::uniform, 0, 1}};
  const InitialPart standard{.seed = 1, .name = "w", .initial = normal(1)};
  const auto uniforms = drawn(1000, uniform), normals = drawn(1000, standard);
  for (int64_t place = 0; place < 1000; ++place) {
    const uint32_t number = word_of(1, "w", place) >> 8;
    EXPECT_EQ(uniforms[static_cast<size_t>(place)], static_cast<float>(number) * 0x1p-24f);
    // The middle of the 2^24 parts of the distribution.
    EXPECT_NEAR(normal_share(normals[static_cast<size_t>(place)]), (number + 0.5) * 0x1p-24, 2e-7);
  }
}

// Part of the promise that a seed gives the same network on every machine and in every version.
TEST(InitialValues, StayWhatTheyAre) {
  const auto checksum = [](const Initial& initial) {
    const auto values = drawn(100'000, {.seed = 1, .name = "conv1.weight", .initial = initial});
    return Checksum().add(std::as_bytes(std::span(values))).hex();
  };
  EXPECT_EQ(checksum(uniform_by_inputs(100)), "6af4f956bd1d6f20");
  EXPECT_EQ(checksum(normal(0.02)), "ead4c62890a6f735");
  EXPECT_EQ(checksum(truncated_normal(0.1)), "10053c704daaf7bc");
}

TEST(InitialValues, CanBeFixed) {
  EXPECT_EQ(drawn(3, {.name = "bn.weight", .initial = constant(1)}), (std::vector<float>{1, 1, 1}));
  std::vector<int64_t> places(3);
  fill_initial(places, {.name = "ids", .initial = {.kind = Initial::Kind::count}, .begin = 4});
  EXPECT_EQ(places, (std::vector<int64_t>{4, 5, 6}));
}

TEST(InitialValues, ThatAFileMustGiveAreMissed) {
  std::vector<float> values(3);
  EXPECT_THROW(fill_initial(values, {.name = "w", .initial = {}}), Error);
  std::vector<int64_t> numbers(3);
  EXPECT_THROW(fill_initial(numbers, {.name = "w", .initial = normal(1)}), Error);
}

}  // namespace
}  // namespace renkei::networks
