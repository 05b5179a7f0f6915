#include "data/random_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/data/field_values.h"

namespace renkei::data {
namespace {

TEST(RandomTokens, HaveTheNextTokenAsTarget) {
  const RandomTokens data({.count = 3, .sequence = 40, .vocabulary = 11});
  for (int64_t sample = 0; sample < 3; ++sample) {
    const auto input = values_of<int64_t>(data, sample, kInput);
    const auto target = values_of<int64_t>(data, sample, kTarget);
    EXPECT_TRUE(std::equal(input.begin() + 1, input.end(), target.begin()));
    for (const int64_t token : target) EXPECT_TRUE(token >= 0 && token < 11);
  }
  EXPECT_NE(values_of<int64_t>(data, 0, kInput), values_of<int64_t>(data, 1, kInput));
}

TEST(RandomTokens, HideTheSameNumberOfTokensInEverySample) {
  const RandomTokens data({.count = 5, .sequence = 40, .vocabulary = 11, .masked = true});
  for (int64_t sample = 0; sample < 5; ++sample) {
    const auto input = values_of<int64_t>(data, sample, kInput);
    const auto target = values_of<int64_t>(data, sample, kTarget);
    int hidden = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      const bool predicted = target[i] != RandomTokens::kNotPredicted;
      EXPECT_EQ(predicted, input[i] == 10);
      EXPECT_TRUE(!predicted || (target[i] >= 0 && target[i] < 10));
      hidden += predicted;
    }
    EXPECT_EQ(hidden, 6);
  }
}

TEST(RandomTokens, IdsMayBeLargerThanFloatsHold) {
  const RandomTokens data({.count = 1, .sequence = 40, .vocabulary = INT32_MAX});
  const auto ids = values_of<int64_t>(data, 0, kInput);
  EXPECT_TRUE(std::ranges::any_of(
      ids, [](int64_t id) { return static_cast<int64_t>(static_cast<float>(id)) != id; }));
  EXPECT_THROW(RandomTokens({.count = 1, .sequence = 1, .vocabulary = int64_t{1} << 31}), Error);
}

}  // namespace
}  // namespace renkei::data
