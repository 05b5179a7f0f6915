#include "data/permutation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

std::vector<int64_t> all(const Permutation& permutation) {
  std::vector<int64_t> samples;
  for (int64_t position = 0; position < permutation.count(); ++position)
    samples.push_back(permutation(position));
  return samples;
}

// How far counts are from equal, in standard deviations of the chi-square distribution.
double chi_square_deviation(const std::vector<int64_t>& counts) {
  double total = 0;
  for (const int64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected);
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (sum / expected - freedom) / std::sqrt(2 * freedom);
}

void expect_bijection(int64_t count) {
  std::vector<int64_t> samples = all(Permutation(count, 7, 3));
  std::ranges::sort(samples);
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(samples[static_cast<size_t>(i)], i) << count;
}

TEST(Permutation, TakesEverySampleOnce) {
  for (int64_t count = 1; count <= 300; ++count) expect_bijection(count);
  for (int64_t count : {1023, 1024, 1025, 4095, 4096, 4097, 9999, 10000, 10001, 65537, 200003})
    expect_bijection(count);
}

TEST(Permutation, InverseFindsThePosition) {
  for (int64_t count : {1, 2, 3, 10, 99, 1000, 12345}) {
    const Permutation permutation(count, 5, 1);
    for (int64_t position = 0; position < count; ++position)
      ASSERT_EQ(permutation.position_of(permutation(position)), position) << count;
  }
}

TEST(Permutation, WorksBeyondFourBillionSamples) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  for (int64_t count : {(int64_t{1} << 32) + 1, int64_t{10'000'000'000}, largest}) {
    const Permutation permutation(count, 1, 0);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t position = count / 1000 * i;
      const int64_t sample = permutation(position);
      ASSERT_GE(sample, 0);
      ASSERT_LT(sample, count);
      ASSERT_EQ(permutation.position_of(sample), position);
      seen.insert(sample);
    }
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_GT(*seen.rbegin(), count / 100 * 95);
  }
}

TEST(Permutation, DependsOnSeedAndEpochOnly) {
  const auto order = all(Permutation(1000, 1, 0));
  EXPECT_EQ(order, all(Permutation(1000, 1, 0)));
  EXPECT_NE(order, all(Permutation(1000, 1, 1)));
  EXPECT_NE(order, all(Permutation(1000, 2, 0)));
  // Unrelated orders agree in one place on average.
  const auto other = all(Permutation(1000, 1, 1));
  int same = 0;
  for (size_t i = 0; i < order.size(); ++i) same += order[i] == other[i];
  EXPECT_LT(same, 10);
}

TEST(Permutation, PutsEverySampleAnywhereEquallyOften) {
  constexpr int64_t kCount = 20, kEpochs = 20000;
  std::vector<int64_t> counts(kCount * kCount);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(kCount, 11, epoch);
    for (int64_t position = 0; position < kCount; ++position)
      ++counts[static_cast<size_t>(position * kCount + permutation(position))];
  }
  EXPECT_LT(std::abs(chi_square_deviation(counts)), 5);
}

TEST(Permutation, MakesAllOrdersOfAFewSamplesEquallyOften) {
  for (const auto& [count, orders] :
       std::map<int64_t, size_t>{{2, 2}, {3, 6}, {4, 24}, {5, 120}, {6, 720}}) {
    std::map<std::vector<int64_t>, int64_t> seen;
    for (int64_t epoch = 0; epoch < 24000; ++epoch) ++seen[all(Permutation(count, 1, epoch))];
    ASSERT_EQ(seen.size(), orders);
    std::vector<int64_t> counts;
    for (const auto& [order, times] : seen) counts.push_back(times);
    EXPECT_LT(chi_square_deviation(counts), 5) << count;
  }
}

TEST(Permutation, MakesEvenAndOddOrders) {
  for (int64_t count : {7, 9, 25, 81}) {
    int odd = 0;
    for (int64_t epoch = 0; epoch < 1000; ++epoch) {
      const auto order = all(Permutation(count, 1, epoch));
      int inversions = 0;
      for (size_t i = 0; i < order.size(); ++i)
        for (size_t k = 0; k < i; ++k) inversions += order[k] > order[i];
      odd += inversions % 2;
    }
    EXPECT_NEAR(odd, 500, 80) << count;
  }
}

TEST(Permutation, SeparatesNeighbours) {
  // The step from one sample to the next one in line, in 16 classes, must be as random as the rest.
  constexpr int64_t kCount = 100000;
  const auto order = all(Permutation(kCount, 1, 0));
  std::vector<int64_t> counts(16);
  for (size_t i = 0; i + 1 < order.size(); ++i)
    ++counts[static_cast<size_t>((order[i + 1] - order[i] + kCount) % kCount * 16 / kCount)];
  EXPECT_LT(std::abs(chi_square_deviation(counts)), 5);
}

// The order is a promise to everyone who wants to repeat a run: it never changes.
TEST(Permutation, KeepsItsOrderForever) {
  EXPECT_EQ(all(Permutation(10, 1, 0)), (std::vector<int64_t>{7, 6, 5, 2, 9, 4, 3, 1, 8, 0}));
}

TEST(Permutation, RefusesPlacesThatDoNotExist) {
  expect_error(ErrorCode::bug, "no permutation of 0", [] { Permutation(0, 1, 0); });
  expect_error(ErrorCode::bug, "position 5 of 5", [] { Permutation(5, 1, 0)(5); });
  expect_error(ErrorCode::bug, "sample -1 of 5", [] { Permutation(5, 1, 0).position_of(-1); });
}

}  // namespace
}  // namespace renkei::data
