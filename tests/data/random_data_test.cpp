#include "data/random_data.h"

#include <cmath>
#include <set>

#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

std::vector<float> input_of(const Dataset& dataset, int64_t sample) {
  std::vector<float> input(static_cast<size_t>(dataset.sample_size()));
  dataset.read_input(sample, input);
  return input;
}

TEST(RandomData, InputsAreStandardNormalAndRepeatable) {
  const RandomData data({.sample_shape = {3, 20, 20}, .count = 50, .classes = 10});
  EXPECT_EQ(data.sample_size(), 1200);
  double sum = 0, squares = 0;
  for (int64_t sample = 0; sample < data.count(); ++sample)
    for (const float value : input_of(data, sample)) {
      sum += value;
      squares += double{value} * value;
    }
  EXPECT_NEAR(sum / 60000, 0, 0.02);
  EXPECT_NEAR(squares / 60000, 1, 0.03);
  EXPECT_EQ(input_of(data, 3), input_of(data, 3));
  EXPECT_NE(input_of(data, 3), input_of(data, 4));
}

TEST(RandomData, SeedsGiveDifferentData) {
  const RandomData a({.sample_shape = {9}, .count = 1, .classes = 2, .seed = 1});
  const RandomData b({.sample_shape = {9}, .count = 1, .classes = 2, .seed = 2});
  EXPECT_NE(input_of(a, 0), input_of(b, 0));
}

TEST(RandomData, ASampleIsTheSameKeptOrDrawnAnew) {
  const RandomData kept({.sample_shape = {100}, .count = 10, .target_size = 3});
  const RandomData drawn({.sample_shape = {100}, .count = 1 << 20, .target_size = 3});
  std::vector<float> a(100), b(100);
  kept.read_input(7, a);
  drawn.read_input(7, b);
  EXPECT_EQ(a, b);
}

TEST(RandomData, LabelsUseAllClasses) {
  const RandomData data({.sample_shape = {1}, .count = 1000, .classes = 7});
  std::set<int64_t> labels;
  for (int64_t sample = 0; sample < data.count(); ++sample) labels.insert(data.label(sample));
  EXPECT_EQ(labels, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(RandomData, TargetsAreNotTheInputs) {
  const RandomData data({.sample_shape = {4}, .count = 2, .target_size = 4});
  std::vector<float> target(4);
  data.read_target(1, target);
  EXPECT_EQ(data.classes(), 0);
  EXPECT_NE(target, input_of(data, 1));
  for (const float value : target) EXPECT_TRUE(std::isfinite(value));
}

TEST(RandomData, OffersOneKindOfTarget) {
  const RandomData labels({.sample_shape = {1}, .count = 1, .classes = 2});
  const RandomData numbers({.sample_shape = {1}, .count = 1, .target_size = 2});
  std::vector<float> target(2);
  expect_error(ErrorCode::bug, "classification", [&] { labels.read_target(0, target); });
  expect_error(ErrorCode::bug, "regression", [&] { numbers.label(0); });
}

TEST(RandomData, ChecksSamplesAndSpans) {
  const RandomData data({.sample_shape = {2, 3}, .count = 4, .target_size = 2});
  std::vector<float> six(6), two(2);
  expect_error(ErrorCode::bug, "sample 4", [&] { data.read_input(4, six); });
  expect_error(ErrorCode::bug, "sample -1", [&] { data.read_target(-1, two); });
  expect_error(ErrorCode::bug, "a span of 2", [&] { data.read_input(0, two); });
  expect_error(ErrorCode::bug, "a span of 6", [&] { data.read_target(0, six); });
}

TEST(RandomData, RefusesImpossibleOptions) {
  expect_error(ErrorCode::usage, "0 samples",
               [] { RandomData({.sample_shape = {1}, .classes = 1}); });
  expect_error(ErrorCode::usage, "without elements", [] {
    RandomData({.sample_shape = {3, 0}, .count = 1, .classes = 1});
  });
  expect_error(ErrorCode::usage, "0 classes and targets of 0",
               [] { RandomData({.sample_shape = {1}, .count = 1}); });
  expect_error(ErrorCode::usage, "2 classes and targets of 2", [] {
    RandomData({.sample_shape = {1}, .count = 1, .classes = 2, .target_size = 2});
  });
}

}  // namespace
}  // namespace renkei::data
