#include "optim/learning_rate.h"

#include <gtest/gtest.h>

namespace renkei::optim {
namespace {

constexpr RunLength kNinetyEpochs{.steps_per_epoch = 100, .steps = 9000, .batch = 32768};

double at_epoch(const ScheduleOptions& options, double epoch) {
  return learning_rate(options, kNinetyEpochs, static_cast<int64_t>(epoch * 100 + 0.5));
}

TEST(LearningRate, IsConstantByDefault) {
  const ScheduleOptions options{.learning_rate = 0.3};
  for (const double epoch : {0.0, 45.0, 89.99}) EXPECT_DOUBLE_EQ(at_epoch(options, epoch), 0.3);
}

TEST(LearningRate, GrowsWithTheBatchOverTheReferenceBatch) {
  const ScheduleOptions options{.learning_rate = 0.1, .reference_batch = 256};
  EXPECT_DOUBLE_EQ(at_epoch(options, 0), 12.8);
}

TEST(LearningRate, WarmsUpFromTheUnscaledRateToTheScaledOne) {
  const ScheduleOptions options{.learning_rate = 0.1, .reference_batch = 256, .warmup_epochs = 5};
  EXPECT_DOUBLE_EQ(at_epoch(options, 0), 0.1 + 12.7 / 500);
  EXPECT_DOUBLE_EQ(at_epoch(options, 2.49), 0.1 + 12.7 / 2);
  EXPECT_DOUBLE_EQ(at_epoch(options, 4.99), 12.8);
  EXPECT_DOUBLE_EQ(at_epoch(options, 5), 12.8);
}

TEST(LearningRate, WarmsUpFromZeroOrFromWhereItIsTold) {
  ScheduleOptions options{.learning_rate = 1, .warmup_epochs = 1};
  EXPECT_DOUBLE_EQ(at_epoch(options, 0), 0.01);
  options.warmup_from = 0.5;
  EXPECT_DOUBLE_EQ(at_epoch(options, 0.49), 0.75);
}

TEST(LearningRate, FallsAtEachMilestone) {
  const ScheduleOptions options{.kind = ScheduleKind::steps, .learning_rate = 1};
  EXPECT_DOUBLE_EQ(at_epoch(options, 29.99), 1);
  EXPECT_DOUBLE_EQ(at_epoch(options, 30), 0.1);
  EXPECT_DOUBLE_EQ(at_epoch(options, 60), 0.01);
  EXPECT_NEAR(at_epoch(options, 85), 0.001, 1e-15);
}

TEST(LearningRate, FollowsHalfACosineFromTheEndOfTheWarmUp) {
  const ScheduleOptions options{
      .kind = ScheduleKind::cosine, .learning_rate = 2, .warmup_epochs = 10, .final_fraction = 0.1};
  EXPECT_DOUBLE_EQ(at_epoch(options, 10), 2);
  EXPECT_DOUBLE_EQ(at_epoch(options, 50), 2 * 0.55);
  EXPECT_DOUBLE_EQ(at_epoch(options, 90), 2 * 0.1);
  EXPECT_GT(at_epoch(options, 49), at_epoch(options, 50));
}

TEST(LearningRate, StartsSlowlyAsInTheFifteenMinuteRun) {
  const ScheduleOptions options{
      .kind = ScheduleKind::slow_start, .learning_rate = 0.1, .reference_batch = 256};
  EXPECT_DOUBLE_EQ(at_epoch(options, 0), 6.4);
  EXPECT_DOUBLE_EQ(at_epoch(options, 39.99), 6.4);
  EXPECT_DOUBLE_EQ(at_epoch(options, 40), 0.96);
  EXPECT_DOUBLE_EQ(at_epoch(options, 69.99), 0.96);
  EXPECT_DOUBLE_EQ(at_epoch(options, 70), 0.128);
  EXPECT_DOUBLE_EQ(at_epoch(options, 84.99), 0.128);
  EXPECT_DOUBLE_EQ(at_epoch(options, 85), 0.0128);
}

}  // namespace
}  // namespace renkei::optim
