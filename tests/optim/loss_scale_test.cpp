#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::optim {
namespace {

TEST(FixedLossScale, NeverChangesAndNeverLeavesOutAStep) {
  LossScale scale({.scale = 128});
  for (const bool finite : {true, false, true}) {
    EXPECT_TRUE(scale.should_update(finite));
    EXPECT_EQ(scale.scale(), 128);
  }
}

TEST(DynamicLossScale, IsHalvedByAnOverflowWhoseStepIsLeftOut) {
  LossScale scale({.dynamic = true, .scale = 1024});
  EXPECT_FALSE(scale.should_update(false));
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_TRUE(scale.should_update(true));
  EXPECT_EQ(scale.scale(), 512);
}

TEST(DynamicLossScale, IsDoubledAfterManyGoodStepsInARow) {
  LossScale scale({.dynamic = true, .scale = 8, .growth_interval = 3});
  scale.should_update(true);
  scale.should_update(true);
  scale.should_update(false);  // counts anew
  EXPECT_EQ(scale.scale(), 4);
  scale.should_update(true);
  scale.should_update(true);
  EXPECT_EQ(scale.scale(), 4);
  scale.should_update(true);
  EXPECT_EQ(scale.scale(), 8);
}

TEST(DynamicLossScale, DoesNotShrinkTheLoss) {
  LossScale scale({.dynamic = true, .scale = 2});
  for (int step = 0; step < 10; ++step) scale.should_update(false);
  EXPECT_EQ(scale.scale(), 1);
}

TEST(LossScale, MustBePositive) {
  EXPECT_THROW(LossScale({.scale = 0}), Error);
  EXPECT_THROW(LossScale({.growth_interval = 0}), Error);
}

}  // namespace
}  // namespace renkei::optim
