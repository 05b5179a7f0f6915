#include "data/random_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace renkei::data {
namespace {

std::vector<float> input_of(const RandomTokens& data, int64_t sample) {
  std::vector<float> row(static_cast<size_t>(data.sample_size()));
  data.read_input(sample, row);
  return row;
}

std::vector<float> target_of(const RandomTokens& data, int64_t sample) {
  std::vector<float> row(static_cast<size_t>(data.target_size()));
  data.read_target(sample, row);
  return row;
}

TEST(RandomTokens, HaveTheNextTokenAsTarget) {
  const RandomTokens data({.count = 3, .sequence = 40, .vocabulary = 11});
  for (int64_t sample = 0; sample < 3; ++sample) {
    const auto input = input_of(data, sample), target = target_of(data, sample);
    EXPECT_TRUE(std::equal(input.begin() + 1, input.end(), target.begin()));
    for (const float token : target) EXPECT_TRUE(token >= 0 && token < 11);
  }
  EXPECT_NE(input_of(data, 0), input_of(data, 1));
}

TEST(RandomTokens, HideTheSameNumberOfTokensInEverySample) {
  const RandomTokens data({.count = 5, .sequence = 40, .vocabulary = 11, .masked = true});
  for (int64_t sample = 0; sample < 5; ++sample) {
    const auto input = input_of(data, sample), target = target_of(data, sample);
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

TEST(RandomTokens, RefuseAVocabularyThatFloatsCannotHold) {
  EXPECT_THROW(RandomTokens({.count = 1, .sequence = 1, .vocabulary = (1 << 24) + 1}), Error);
}

}  // namespace
}  // namespace renkei::data
