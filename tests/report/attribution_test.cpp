#include "report/attribution.h"

#include <gtest/gtest.h>

#include <numeric>

#include "report/what_if.h"
#include "tests/report/virtual_run.h"

namespace renkei::report {
namespace {

using plan::ScheduleKind;
using test::VirtualRun;
using timeline::Category;

struct Analysis {
  std::vector<RecordedStep> steps;
  Attribution attribution;
  WhatIfs what_ifs;
  Verdict verdict;
};

Analysis analyse(const VirtualRun& run) {
  Analysis analysis{.steps = recorded_steps(run.record())};
  analysis.attribution = attribute(analysis.steps);
  analysis.what_ifs = what_if(analysis.steps, analysis.attribution);
  analysis.verdict = verdict_of(analysis.steps, analysis.attribution, analysis.what_ifs);
  return analysis;
}

struct Scenario {
  const char* name;
  VirtualRun run;      // with its cause
  VirtualRun without;  // and without
  Category cause;
  int rank;
  const char* what_if;  // how the line that takes the cause away begins
};

VirtualRun changed(VirtualRun run, auto change) {
  change(run);
  return run;
}

std::vector<Scenario> scenarios() {
  const VirtualRun data{.replicas = 4, .micro_batches = 2, .reduce = 0.001};
  const VirtualRun deep{.kind = ScheduleKind::one_f_one_b, .stages = 4, .micro_batches = 4};
  const VirtualRun hybrid{.kind = ScheduleKind::one_f_one_b,
                          .stages = 2,
                          .replicas = 2,
                          .micro_batches = 16,
                          .reduce = 0.001};
  const VirtualRun long_one{.kind = ScheduleKind::gpipe, .stages = 3, .micro_batches = 24};
  return {
      {"a slow rank among replicas",
       changed(data,
               [](VirtualRun& run) {
                 run.slowness = {1, 1, 1, 1.3};
               }),
       data, Category::wait, 3, "rank 3"},
      {"a slow replica in a pipeline",
       changed(hybrid,
               [](VirtualRun& run) {
                 run.slowness = {1, 1.25, 1, 1};
               }),
       hybrid, Category::wait, 1, "rank 1"},
      {"slow reductions", changed(data, [](VirtualRun& run) { run.reduce = 0.05; }),
       changed(data, [](VirtualRun& run) { run.reduce = 0.025; }), Category::communication, -1,
       "16 bits"},
      {"slow data", changed(data, [](VirtualRun& run) { run.load = 0.02; }),
       changed(data, [](VirtualRun& run) { run.load = 0; }), Category::data, -1, "data always"},
      {"slow data of a pipeline", changed(long_one, [](VirtualRun& run) { run.load = 0.02; }),
       changed(long_one, [](VirtualRun& run) { run.load = 0; }), Category::data, -1, "data always"},
      {"unbalanced stages",
       changed(long_one,
               [](VirtualRun& run) {
                 run.stage_work = {0.8, 1.6, 0.6};
               }),
       long_one, Category::imbalance, 1, "stages balanced"},
      {"few micro-batches in a deep pipeline", deep,
       changed(deep,
               [](VirtualRun& run) {
                 run.micro_batches = 8;
                 run.forward /= 2;
                 run.load /= 2;
               }),
       Category::bubble, -1, "8 micro-batches"},
      {"slow links between stages",
       changed(hybrid,
               [](VirtualRun& run) {
                 run.transfer = 0.04;
                 run.reduce = 0;
               }),
       changed(hybrid,
               [](VirtualRun& run) {
                 run.transfer = 0.02;
                 run.reduce = 0;
               }),
       Category::communication, -1, "16 bits"},
  };
}

TEST(Attribution, NamesTheCauseTheRankAndTheGain) {
  for (const Scenario& scenario : scenarios()) {
    SCOPED_TRACE(scenario.name);
    const Analysis found = analyse(scenario.run);
    EXPECT_EQ(found.verdict.cause, name_of(scenario.cause)) << found.verdict.sentence;
    EXPECT_EQ(found.verdict.rank, scenario.rank) << found.verdict.sentence;
    const auto line = std::ranges::find_if(found.what_ifs.list, [&](const WhatIf& one) {
      return one.cause.starts_with(scenario.what_if);
    });
    ASSERT_NE(line, found.what_ifs.list.end());
    const double gain = scenario.run.step_seconds() - scenario.without.step_seconds();
    EXPECT_NEAR(scenario.run.step_seconds() - line->step_seconds, gain, 0.1 * gain);
    EXPECT_NEAR(found.what_ifs.replay_error(), 0, 1e-6);
  }
}

TEST(Attribution, AddsUpToTheStepOnEveryRank) {
  for (const Scenario& scenario : scenarios()) {
    SCOPED_TRACE(scenario.name);
    const Analysis found = analyse(scenario.run);
    for (const timeline::StepTimes& rank : found.attribution.ranks) {
      const auto& parts = rank.by_category;
      EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), rank.seconds, 1e-9);
      EXPECT_NEAR(rank.seconds, scenario.run.step_seconds(), 1e-9);
      for (const double part : parts) EXPECT_GE(part, -1e-9);
      EXPECT_LT(rank[Category::other], 0.005 * rank.seconds);
    }
  }
}

TEST(Attribution, FindsTheIdealBubbleOfBalancedStages) {
  const VirtualRun run{.kind = ScheduleKind::gpipe,
                       .stages = 4,
                       .micro_batches = 8,
                       .load = 0,
                       .update = 0,
                       .loss = 0};
  const Analysis found = analyse(run);
  EXPECT_NEAR(found.attribution.all[Category::bubble] / found.attribution.all.seconds, 3.0 / 11,
              1e-6);
  EXPECT_NEAR(found.attribution.all[Category::imbalance], 0, 1e-9);
  EXPECT_NEAR(found.attribution.all[Category::wait], 0, 1e-9);
}

TEST(Attribution, SaysWhoWaitsForWhom) {
  const Analysis found = analyse({.replicas = 3, .slowness = {1, 1.5, 1}});
  EXPECT_NEAR(found.attribution.waited_for[0][1], 0.015, 1e-6);
  EXPECT_NEAR(found.attribution.waited_for[2][1], 0.015, 1e-6);
  EXPECT_NEAR(found.attribution.waited_for[1][0] + found.attribution.waited_for[1][2], 0, 1e-6);
}

TEST(Attribution, ARunWithoutOtherCausesIsAllComputing) {
  const Analysis found = analyse({.replicas = 2, .update = 0.0001});
  EXPECT_EQ(found.verdict.cause, "none") << found.verdict.sentence;
}

TEST(Attribution, OfNothingIsNothing) {
  EXPECT_TRUE(attribute({}).steps.empty());
  EXPECT_EQ(verdict_of({}, {}, {}).cause, "none");
}

TEST(RecordedSteps, LeaveOutThoseThatARankHasDroppedInPart) {
  auto timelines = VirtualRun{.replicas = 2}.record();
  timelines[1].events.erase(timelines[1].events.begin(), timelines[1].events.begin() + 9);
  timelines[1].dropped_events = 9;
  const auto steps = recorded_steps(timelines);
  ASSERT_FALSE(steps.empty());
  EXPECT_GT(steps.front().step, 0);
  EXPECT_EQ(steps.back().step, 5);
}

}  // namespace
}  // namespace renkei::report
