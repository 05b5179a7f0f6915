#include "report/run_report.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "report/live.h"
#include "report/page_data.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "tests/report/virtual_run.h"

namespace renkei::report {
namespace {

using test::TemporaryDirectory;
using test::VirtualRun;

// An hour of eight ranks: ten million slices.
TEST(RunReport, AnHourOfEightRanksIsReportedInASmallPage) {
  const TemporaryDirectory directory;
  const VirtualRun run{.replicas = 8, .slowness = {1, 1, 1, 1, 1, 1.2, 1, 1}, .reduce = 0.002};
  const auto evaluation = evaluate(run.step(), schedule::Record::all);
  constexpr int64_t kSteps = 180'000;
  for (int r = 0; r < 8; ++r) {
    timeline::RankFile file({.directory = directory / "timeline"},
                            {.rank = r, .ranks = 8, .host = "a"});
    for (int64_t step = 0; step < kSteps; ++step) {
      const double begin = static_cast<double>(step) * evaluation.seconds;
      for (const schedule::Event& event : evaluation.events[static_cast<size_t>(r)])
        file.add({.name = name_of(event.task.kind),
                  .begin = begin + event.begin,
                  .end = begin + event.end,
                  .step = step,
                  .stage = 0});
      file.add(timeline::StepRecord{
          .step = step, .begin = begin, .times = {.seconds = evaluation.seconds}, .samples = 8});
    }
    file.finish();
  }
  const RunReport report = read_run(directory.path());
  ASSERT_EQ(report.ranks.size(), 8u);
  const auto written =
      report.ranks[0].dropped_events + static_cast<int64_t>(report.ranks[0].events.size());
  EXPECT_GE(8 * written, 10'000'000);
  EXPECT_EQ(report.ranks[0].steps.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(report.verdict.cause, "wait");
  EXPECT_EQ(report.verdict.rank, 5);
  EXPECT_LT(page_of(std::span(&report, 1)).size(), 5'000'000u);
}

TEST(RunReport, OperationsAreMeansOfARanksStep) {
  const TemporaryDirectory directory;
  for (int rank = 0; rank < 2; ++rank) {
    timeline::RankFile file({.directory = directory / "timeline"}, {.rank = rank, .ranks = 2});
    for (int step = 0; step < 2; ++step)
      for (int call = 0; call < 3; ++call)
        file.add({.name = call == 0 ? "aten::mm" : "aten::add",
                  .begin = 10.0 * step + call,
                  .end = 10.0 * step + call + (call == 0 ? 0.5 : 0.125),
                  .step = step,
                  .lane = timeline::kOperationLane});
  }
  const RunReport report = read_run(directory.path());
  ASSERT_EQ(report.operations.size(), 2u);
  EXPECT_EQ(report.operations[0].name, "aten::mm");
  EXPECT_DOUBLE_EQ(report.operations[0].seconds, 0.5);
  EXPECT_DOUBLE_EQ(report.operations[0].calls, 1);
  EXPECT_DOUBLE_EQ(report.operations[1].seconds, 0.25);
  EXPECT_DOUBLE_EQ(report.operations[1].calls, 2);
}

TEST(RunReport, ThereMustBeARun) {
  const TemporaryDirectory directory;
  const Error error = test::thrown_error([&] { read_run(directory.path()); });
  EXPECT_EQ(error.code, ErrorCode::data);
}

// JSON within a script: nothing in it may end the script.
TEST(RunReport, NamesCannotBreakOutOfThePage) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "config.toml", "");
  write_file_atomically(directory / "summary.json",
                        R"json({"model": "</script><script>alert(1)"})json");
  const RunReport report = read_run(directory.path());
  const std::string page = page_of(std::span(&report, 1));
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  EXPECT_NE(page.find("<\\/script><script>alert"), std::string::npos);
}

std::vector<timeline::RankTimeline> hanging() {
  auto ranks = VirtualRun{.replicas = 3}.record();
  for (size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].finished = false;
    ranks[r].info.wall_seconds = 1000;
    ranks[r].last = {.name = r == 1 ? "forward" : "reduce",
                     .step = 6,
                     .stage = 0,
                     .entered = ranks[r].last_seen + 0.01};
  }
  return ranks;
}

TEST(LiveStatus, NamesTheRankThatTheOthersWaitFor) {
  const LiveStatus status = live_status(hanging(), 1100);
  EXPECT_EQ(status.culprit, 1);
  EXPECT_NE(status.sentence.find("rank 1 is in forward of step 6"), std::string::npos)
      << status.sentence;
  EXPECT_EQ(status.operations.size(), 3u);
}

TEST(LiveStatus, ARunThatMovesHasNoCulprit) {
  EXPECT_EQ(live_status(hanging(), 1000.5).culprit, -1);
  EXPECT_EQ(live_status(VirtualRun{.replicas = 2}.record(), 5000).culprit, -1);  // finished
  EXPECT_EQ(live_status({}, 0).culprit, -1);
}

TEST(PrometheusText, HasALineForEachRankAndCategory) {
  const auto ranks = VirtualRun{.replicas = 2}.record();
  const std::string text = prometheus_text(live_status(ranks, 0), ranks);
  EXPECT_NE(text.find("renkei_steps_total 6\n"), std::string::npos);
  EXPECT_NE(text.find("renkei_rank_seconds_total{rank=\"1\",category=\"bubble\"} 0\n"),
            std::string::npos);
}

}  // namespace
}  // namespace renkei::report
