#include "sim/scaling.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "sim/trace.h"
#include "sim/what_if.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/sim/machines.h"
#include "timeline/rank_file.h"

namespace renkei::sim {
namespace {

// Eight layers with 8 MB of parameters each; forward 10 ms for the batch of 8, backward 20 ms.
Scenario layers() {
  Scenario scenario{.machine = test::small_machine(), .batch_per_device = 8};
  scenario.graph.batch = 8;
  for (int i = 0; i <= 8; ++i)
    scenario.graph.values.push_back(
        {.id = std::to_string(i), .bytes = 4096, .batch = true, .gradient = i > 0});
  for (int i = 0; i < 8; ++i) {
    scenario.graph.parameters.push_back({.id = std::to_string(i), .name = "w", .bytes = 8'000'000});
    scenario.graph.ops.push_back({.id = std::to_string(i),
                                  .name = "layer",
                                  .kind = "linear",
                                  .inputs = {i},
                                  .outputs = {i + 1},
                                  .parameters = {i},
                                  .forward_seconds = 0.01,
                                  .backward_seconds = 0.02});
  }
  scenario.graph.inputs = {0};
  scenario.graph.outputs = {8};
  return scenario;
}

TEST(Scaling, OneDeviceOnlyComputesAndUpdates) {
  const ScalingRow row = simulate_on(layers(), 1);
  EXPECT_NEAR(row.step.parts.compute, 0.24, 1e-9);
  EXPECT_EQ(row.step.parts.communication, 0);
  EXPECT_EQ(row.step.parts.imbalance, 0);
  EXPECT_NEAR(row.step_seconds, 0.24 + row.step.parts.update, 1e-9);
}

TEST(Scaling, LoadingThatNothingHidesIsDataTime) {
  Scenario scenario = layers();
  scenario.step.load_seconds_per_sample = 0.01;
  const ScalingRow row = simulate_on(scenario, 1);
  EXPECT_NEAR(row.step.parts.data, 0.08, 1e-12);
  EXPECT_EQ(row.step.parts.bubble, 0);
  EXPECT_NEAR(row.step_seconds, 0.32 + row.step.parts.update, 1e-9);
}

TEST(Scaling, PartsAddUpToTheStepAtEveryLevelOfDetail) {
  for (const Detail detail : {Detail::closed, Detail::rounds, Detail::flows})
    for (const bool search : {false, true}) {
      Scenario scenario = layers();
      scenario.machine.kinds[0].spread = 0.05;
      scenario.step.jitter = 0.02;
      scenario.step.steps = 3;
      scenario.step.reduction.detail = detail;
      if (search) scenario.search = plan::SearchOptions{.stages = 2};
      const ScalingRow row = simulate_on(scenario, 8);
      const StepParts& parts = row.step.parts;
      EXPECT_NEAR(parts.seconds(), row.step_seconds, 1e-9) << name_of(detail);
      EXPECT_GT(parts.imbalance, 0);
      EXPECT_GT(parts.communication, 0);
      EXPECT_EQ(parts.bubble > 1e-6, search) << row.plan;
    }
}

TEST(Scaling, TheRateOfADeviceTakesThePlaceOfEstimates) {
  Scenario scenario = layers();
  scenario.device_samples_per_second = 100;
  EXPECT_NEAR(simulate_on(scenario, 1).samples_per_second, 100, 1e-6);
  scenario.device_samples_per_second = 1e9;
  EXPECT_EQ(renkei::test::thrown_error([&] { simulate_on(scenario, 1); }).code, ErrorCode::usage);
}

// The slowest of n devices of normally distributed speed: for 1,024, 3.2 standard deviations.
TEST(Scaling, SynchronousWorkRunsAtTheSpeedOfTheSlowest) {
  Scenario scenario = layers();
  scenario.machine.kinds[0].spread = 0.02;
  scenario.step.reduction.detail = Detail::closed;
  const double few = simulate_on(scenario, 4).step.parts.imbalance;
  const double many = simulate_on(scenario, 1024).step.parts.imbalance;
  EXPECT_LT(few, many);
  EXPECT_NEAR(many / 0.24, 0.065, 0.02);
}

TEST(Scaling, EfficiencyIsThatOfADeviceComparedWithOneAlone) {
  const auto rows = simulate_scaling(layers(), {1, 4, 64});
  EXPECT_DOUBLE_EQ(rows[0].efficiency, 1);
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i].efficiency, rows[i - 1].efficiency);
  EXPECT_NEAR(rows[2].efficiency, rows[2].samples_per_second / 64 / rows[0].samples_per_second,
              1e-12);
}

TEST(Scaling, AModelThatDoesNotFitIsAnErrorOfMemory) {
  Scenario scenario = layers();
  scenario.memory_bytes = 1 << 20;
  EXPECT_EQ(renkei::test::thrown_error([&] { simulate_on(scenario, 2); }).code, ErrorCode::memory);
}

TEST(Scaling, SensitivityPutsWhatHelpsMostFirst) {
  Scenario scenario = layers();
  scenario.machine.interconnect.link.bytes_per_second = 0.1e9;
  const auto gains = sensitivity(scenario, 16);
  EXPECT_EQ(gains.front().knob, "interconnect.bandwidth");
  EXPECT_GT(gains.front().gain, 0.03);
  for (size_t i = 1; i < gains.size(); ++i) EXPECT_LE(gains[i].gain, gains[i - 1].gain);
}

TEST(Scaling, SlowStorageIsWaitedForUnlessTheDataSetFitsMemory) {
  Scenario scenario = layers();
  scenario.machine.storage = {.name = "disk", .read_bytes_per_second = 10e6};
  scenario.data = {.sample_bytes = 1e6, .bytes = 1e12};
  const ScalingRow row = simulate_on(scenario, 4);
  const double cached = 0.8 * static_cast<double>(int64_t{64} << 30) / 1e12;
  EXPECT_NEAR(row.step_seconds, 32e6 / 10e6 * (1 - cached), 1e-9);
  EXPECT_NEAR(row.reading.needed_bytes_per_second, 32e6 / row.step.seconds, 1e-3);
  scenario.data.bytes = 1e9;
  EXPECT_EQ(simulate_on(scenario, 4).data_seconds, 0);
}

TEST(Failures, AreNoneUnlessAskedForAndCostWhatWasNotSaved) {
  EXPECT_EQ(time_with_failures(1000, 8, {}).seconds, 1000);
  const FailureOptions options{.device_hours_between = 1,
                               .save_every_seconds = 100,
                               .save_seconds = 1,
                               .restart_seconds = 10,
                               .seed = 7};
  const JobTime job = time_with_failures(10'000, 8, options);
  EXPECT_GT(job.failures, 5);  // about one each 450 s
  EXPECT_NEAR(job.seconds, 10'000 + job.saving + job.lost + job.restarting, 1e-6);
  EXPECT_LE(job.lost, job.failures * 101.0);
  FailureOptions never = options;
  never.save_every_seconds = 0;
  EXPECT_GT(time_with_failures(10'000, 8, never).seconds, 2 * job.seconds);
  EXPECT_FALSE(time_with_failures(1e6, 1 << 20, never).ends);
}

TEST(WhatIf, FactorsAndNumbersChangeTheMachine) {
  auto machine = test::small_machine();
  change(machine, "interconnect.bandwidth=2x");
  EXPECT_DOUBLE_EQ(machine.interconnect.link.bytes_per_second, 10e9);
  change(machine, "node.latency=1e-3");
  EXPECT_DOUBLE_EQ(machine.nodes[0].link.latency_seconds, 1e-3);
  EXPECT_EQ(renkei::test::thrown_error([&] { change(machine, "interconnect.bandwith=2x"); }).hint,
            "did you mean cluster.interconnect.bandwidth?");
  for (const char* wrong :
       {"node.latency", "node.latency=fast", "node.bandwidth=0", "node.latency=-1"})
    EXPECT_EQ(renkei::test::thrown_error([&] { change(machine, wrong); }).code, ErrorCode::usage)
        << wrong;
}

TEST(Trace, IsThatOfARunMarkedAsPredicted) {
  const renkei::test::TemporaryDirectory directory;
  const ScalingRow row = simulate_on(layers(), 2);
  write_predicted_timeline(row.step.evaluation, row.batch, directory.path());
  const auto ranks = timeline::read_timeline(directory.path() / "timeline");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_TRUE(ranks[1].info.predicted);
  ASSERT_EQ(ranks[1].steps.size(), 1u);
  const timeline::StepTimes& times = ranks[1].steps[0].times;
  EXPECT_DOUBLE_EQ(times.seconds, row.step_seconds);
  EXPECT_NEAR(times[timeline::Category::compute], 0.24, 1e-9);
  const std::string trace = read_file(directory.path() / "timeline.json");
  for (const char* word : {"forward", "backward", "reduce", "update"})
    EXPECT_NE(trace.find(word), std::string::npos) << word;
}

TEST(Scaling, TheSameInputGivesTheSameBits) {
  Scenario scenario = layers();
  scenario.machine.kinds[0].spread = 0.02;
  scenario.step.jitter = 0.01;
  scenario.step.steps = 2;
  for (const Detail detail : {Detail::closed, Detail::rounds, Detail::flows}) {
    scenario.step.reduction.detail = detail;
    EXPECT_EQ(simulate_on(scenario, 32).step_seconds, simulate_on(scenario, 32).step_seconds);
  }
}

}  // namespace
}  // namespace renkei::sim
