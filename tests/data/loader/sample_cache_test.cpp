#include "data/loader/sample_cache.h"

#include <gtest/gtest.h>

#include "data/permutation.h"

namespace renkei::data {
namespace {

TEST(SampleCache, ServesTheShareOfReadsThatItHasRoomFor) {
  constexpr int64_t kSamples = 1000, kBytes = 100;
  SampleCache cache(kSamples, kSamples * 16 + kSamples / 2 * kBytes);
  int64_t hits = 0;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const Permutation order(kSamples, 1, epoch);
    for (int64_t position = 0; position < kSamples; ++position) {
      const int64_t sample = order(position);
      if (cache.find(sample)) ++hits;
      cache.offer(sample, std::make_shared<const std::string>(kBytes, 'x'));
    }
  }
  EXPECT_EQ(hits, 3 * kSamples / 2);
  EXPECT_LE(cache.bytes(), kSamples / 2 * kBytes);
}

TEST(SampleCache, WithoutRoomItKeepsNothing) {
  SampleCache cache(10, 0);
  cache.offer(3, std::make_shared<const std::string>("x"));
  EXPECT_EQ(cache.find(3), nullptr);
  EXPECT_EQ(cache.bytes(), 0);
}

}  // namespace
}  // namespace renkei::data
