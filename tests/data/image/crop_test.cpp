#include "data/image/crop.h"

#include <gtest/gtest.h>

namespace renkei::data {
namespace {

Random any(uint64_t sample) {
  return Random(1, RandomUse::augmentation, 0, sample);
}

TEST(Crop, WholeAndCentreAreWhatTheySay) {
  Random random = any(0);
  EXPECT_EQ(choose_region(Crop::whole, {500, 375}, {224, 224}, random), (Region{0, 0, 500, 375}));
  // The largest square has 375 pixels; 224/256 of it are 328.
  EXPECT_EQ(choose_region(Crop::centre, {500, 375}, {224, 224}, random),
            (Region{86, 23, 328, 328}));
  EXPECT_EQ(choose_region(Crop::centre, {1, 1}, {224, 224}, random), (Region{0, 0, 1, 1}));
}

TEST(Crop, RandomRegionsFollowTheRecipe) {
  double smallest = 1, largest = 0, lowest = 10, highest = 0;
  for (uint64_t sample = 0; sample < 3000; ++sample) {
    Random random = any(sample);
    const Region region = choose_region(Crop::random, {500, 375}, {224, 224}, random);
    ASSERT_GE(region.x, 0);
    ASSERT_GE(region.y, 0);
    ASSERT_LE(region.x + region.width, 500);
    ASSERT_LE(region.y + region.height, 375);
    const double share = region.width * region.height / (500.0 * 375);
    const double ratio = static_cast<double>(region.width) / region.height;
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    lowest = std::min(lowest, ratio);
    highest = std::max(highest, ratio);
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_NEAR(largest, 1, 0.02);
  EXPECT_NEAR(lowest, 0.75, 0.01);
  EXPECT_NEAR(highest, 1.333, 0.01);
}

TEST(Crop, ExtremeImagesGetACentredRegion) {
  Random random = any(7);
  EXPECT_EQ(choose_region(Crop::random, {1, 1000}, {224, 224}, random), (Region{0, 499, 1, 1}));
  for (const ImageExtent image : {ImageExtent{1, 1}, {2, 1}, {10'000, 3}}) {
    const Region region = choose_region(Crop::random, image, {224, 224}, random);
    EXPECT_GE(region.width, 1);
    EXPECT_LE(region.x + region.width, image.width);
    EXPECT_LE(region.y + region.height, image.height);
  }
}

TEST(Crop, DependsOnTheRandomNumbersOnly) {
  Random a = any(5), b = any(5), c = any(6);
  const Region first = choose_region(Crop::random, {500, 375}, {224, 224}, a);
  EXPECT_EQ(choose_region(Crop::random, {500, 375}, {224, 224}, b), first);
  EXPECT_FALSE(choose_region(Crop::random, {500, 375}, {224, 224}, c) == first);
}

}  // namespace
}  // namespace renkei::data
