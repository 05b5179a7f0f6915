#include "timeline/recorder.h"

#include <gtest/gtest.h>

#include <numeric>

namespace renkei::timeline {
namespace {

TEST(Recorder, WhatNoTaskAccountsForIsOther) {
  Recorder recorder;
  recorder.begin_step(100);
  recorder.add(Category::compute, 2);
  recorder.add(Category::compute, 1);
  recorder.add(Category::communication, 0.5);
  recorder.end_step(104);
  ASSERT_EQ(recorder.steps().size(), 1u);
  const StepTimes& step = recorder.steps()[0];
  EXPECT_EQ(step.seconds, 4);
  EXPECT_EQ(step[Category::compute], 3);
  EXPECT_EQ(step[Category::other], 0.5);
  EXPECT_EQ(std::accumulate(step.by_category.begin(), step.by_category.end(), 0.0), step.seconds);
}

TEST(Recorder, AStepStartsWithNothing) {
  Recorder recorder;
  for (int step = 0; step < 2; ++step) {
    recorder.begin_step(0);
    if (step == 0) recorder.add(Category::data, 1);
    recorder.end_step(1);
  }
  EXPECT_EQ(recorder.steps()[1][Category::data], 0);
  EXPECT_EQ(recorder.steps()[1][Category::other], 1);
}

TEST(SplitWaiting, LeavesTheLastRankItsCommunicationAndTheOthersTheirWait) {
  std::vector<StepTimes> steps(2);
  steps[0][Category::communication] = 5;
  steps[1][Category::communication] = 2;
  split_waiting(steps, {2, 2});
  EXPECT_EQ(steps[0][Category::communication], 2);
  EXPECT_EQ(steps[0][Category::wait], 3);
  EXPECT_EQ(steps[1][Category::wait], 0);
}

TEST(MeanOf, LeavesOutTheWarmUpUnlessThatIsAllThereIs) {
  std::vector<StepTimes> steps(3);
  steps[0].seconds = 100;
  steps[1].seconds = 2;
  steps[2].seconds = 4;
  EXPECT_EQ(mean_of(steps, 1).seconds, 3);
  EXPECT_EQ(mean_of({steps[0]}, 1).seconds, 100);
  EXPECT_EQ(mean_of({}, 1).seconds, 0);
}

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.9), 9);
  EXPECT_EQ(quantile({7}, 0.1), 7);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace renkei::timeline
