#include "data/shuffle_quality.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace renkei::data {
namespace {

constexpr int64_t kSamples = 100'000, kClasses = 10;

int64_t sorted(int64_t sample) {
  return sample * kClasses / kSamples;
}

int64_t mixed(int64_t sample) {
  return Random(7, RandomUse::synth_image, 0, static_cast<uint64_t>(sample)).below(kClasses);
}

double quality(SamplerOptions options, int64_t (*label)(int64_t)) {
  options.count = kSamples;
  options.global_batch = 256;
  return shuffle_quality(Sampler(options), kClasses, label);
}

TEST(ShuffleQuality, OfAGlobalOrderIsOneWhateverTheOrderOnStorage) {
  EXPECT_GT(quality({}, sorted), 0.8);
  EXPECT_GT(quality({}, mixed), 0.8);
}

TEST(ShuffleQuality, OfRunsIsThatOfSoManyFewerSamples) {
  EXPECT_NEAR(quality({.run = 16}, sorted) * 16, 1, 0.3);
  EXPECT_NEAR(quality({.run = 64}, sorted) * 64, 1, 0.4);
  EXPECT_GT(quality({.run = 16}, mixed), 0.8);  // packed in random order
}

TEST(ShuffleQuality, WithoutShufflingIsThatOfASingleSample) {
  EXPECT_LT(quality({.shuffle = false}, sorted), 0.01);
}

TEST(ShuffleQuality, CannotBeToldOfOneClassOrOneBatch) {
  EXPECT_EQ(
      shuffle_quality(Sampler({.count = 100, .global_batch = 10}), 1, [](int64_t) { return 0; }),
      1);
  EXPECT_EQ(shuffle_quality(Sampler({.count = 100, .global_batch = 100}), 2,
                            [](int64_t sample) { return sample % 2; }),
            1);
}

}  // namespace
}  // namespace renkei::data
