#include "data/random_data.h"

#include <cmath>
#include <set>

#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"

namespace renkei::data {
namespace {

TEST(RandomData, InputsAreStandardNormalAndRepeatable) {
  const RandomData data({.sample_shape = {3, 20, 20}, .count = 50, .classes = 10});
  EXPECT_EQ(data.fields()[0].bytes(), 4800);
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
  EXPECT_EQ(input_of(kept, 7), input_of(drawn, 7));
}

TEST(RandomData, LabelsUseAllClasses) {
  const RandomData data({.sample_shape = {1}, .count = 1000, .classes = 7});
  std::set<int64_t> labels;
  for (int64_t sample = 0; sample < data.count(); ++sample) labels.insert(label_of(data, sample));
  EXPECT_EQ(labels, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(RandomData, TargetsAreNotTheInputs) {
  const RandomData data({.sample_shape = {4}, .count = 2, .target_size = 4});
  const auto target = values_of<float>(data, 1, kTarget);
  EXPECT_FALSE(data.fields()[1].is_label());
  EXPECT_NE(target, input_of(data, 1));
  for (const float value : target) EXPECT_TRUE(std::isfinite(value));
}

TEST(RandomData, HasSeveralInputsEachOfItsOwnNumbers) {
  const RandomData data({.count = 5,
                         .target_size = 3,
                         .inputs = {{"ids", {4}, 9}, {"noise", {2, 2}}},
                         .target_below = 7});
  ASSERT_EQ(data.fields().size(), 3u);
  EXPECT_EQ(data.fields()[0].dtype, DType::i64);
  EXPECT_EQ(data.fields()[1].dtype, DType::f32);
  EXPECT_EQ(data.fields()[2].dtype, DType::i64);
  for (const int64_t id : values_of<int64_t>(data, 3, "ids")) EXPECT_TRUE(id >= 0 && id < 9);
  for (const int64_t id : values_of<int64_t>(data, 3, kTarget)) EXPECT_TRUE(id >= 0 && id < 7);
  EXPECT_EQ(values_of<float>(data, 3, "noise").size(), 4u);
}

TEST(RandomData, ChecksSamplesFieldsAndSpans) {
  const RandomData data({.sample_shape = {2, 3}, .count = 4, .target_size = 2});
  std::vector<std::byte> bytes(24);
  const auto read = [&](int64_t sample, size_t field, size_t size) {
    const FieldSpan into{.field = field, .bytes = std::span(bytes).first(size)};
    data.read(sample, 0, {&into, 1});
  };
  expect_error(ErrorCode::bug, "sample 4", [&] { read(4, 0, 24); });
  expect_error(ErrorCode::bug, "sample -1", [&] { read(-1, 1, 8); });
  expect_error(ErrorCode::bug, "a span of 8", [&] { read(0, 0, 8); });
  expect_error(ErrorCode::bug, "a span of 24", [&] { read(0, 1, 24); });
  expect_error(ErrorCode::bug, "field 2", [&] { read(0, 2, 8); });
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
