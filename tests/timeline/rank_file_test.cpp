#include "timeline/rank_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "tests/base/killed_child.h"
#include "tests/base/temporary_directory.h"
#include "tests/base/thrown_error.h"
#include "timeline/recorder.h"

namespace renkei::timeline {
namespace {

using test::TemporaryDirectory;

Event numbered(int64_t i) {
  return {.name = i % 2 ? "forward" : "backward",
          .category = Category::compute,
          .begin = 100 + static_cast<double>(i),
          .end = 100.5 + static_cast<double>(i),
          .step = i,
          .index = 3,
          .stage = 1,
          .peer = 2,
          .peer_stage = 0,
          .bytes = 7 * i};
}

TEST(RankFile, GivesBackWhatWasRecorded) {
  const TemporaryDirectory directory;
  {
    RankFile file({.directory = directory.path()},
                  {.rank = 0, .ranks = 1, .host = "a", .origin = 100, .wall_seconds = 5});
    for (int64_t i = 0; i < 10'000; ++i) file.add(numbered(i));
    file.add(StepRecord{.step = 4, .begin = 101, .times = {.seconds = 2}, .samples = 64});
    file.finish();
  }
  const RankTimeline read = read_timeline(directory.path()).at(0);
  EXPECT_EQ(read.info.host, "a");
  EXPECT_TRUE(read.finished);
  EXPECT_EQ(read.dropped_events, 0);
  ASSERT_EQ(read.events.size(), 10'000u);
  const Event& event = read.events[9];
  EXPECT_EQ(event.name, "forward");
  EXPECT_DOUBLE_EQ(event.begin, 9);
  EXPECT_DOUBLE_EQ(event.end, 9.5);
  EXPECT_EQ(event.step, 9);
  EXPECT_EQ(event.stage, 1);
  EXPECT_EQ(event.peer, 2);
  EXPECT_EQ(event.bytes, 63);
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].step, 4);
  EXPECT_DOUBLE_EQ(read.steps[0].end(), 3);
}

TEST(RankFile, KeepsTheLastSlicesAndSaysHowManyItDropped) {
  const TemporaryDirectory directory;
  RankFile file({.directory = directory.path(), .most_events = 5000}, {});
  for (int64_t i = 0; i < 12'345; ++i) file.add(numbered(i));
  const RankTimeline read = read_rank_file(directory.path(), 0);
  EXPECT_EQ(read.dropped_events, 7345);
  ASSERT_EQ(read.events.size(), 5000u);
  EXPECT_EQ(read.events.front().step, 7345);
  EXPECT_EQ(read.events.back().step, 12'344);
  EXPECT_FALSE(read.finished);
}

TEST(RankFile, AKilledProcessLeavesAllThatItRecorded) {
  const TemporaryDirectory directory;
  const int status = test::run_in_child([&] {
    RankFile file({.directory = directory.path()}, {});
    Recorder recorder(&file);
    recorder.begin_step(1, 7, 8);
    recorder.add(numbered(1));
    recorder.end_step(2);
    recorder.enter({.name = "receive", .begin = 3, .step = 8, .stage = 1, .peer = 5});
    std::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const RankTimeline read = read_rank_file(directory.path(), 0);
  EXPECT_EQ(read.events.size(), 1u);
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].step, 7);
  EXPECT_EQ(read.last.name, "receive");
  EXPECT_EQ(read.last.peer, 5);
  EXPECT_TRUE(read.last.inside());
  EXPECT_FALSE(read.finished);
}

TEST(RankFile, TimesAreThoseOfTheFirstRanksClock) {
  const TemporaryDirectory directory;
  {
    // It is 50 s ahead at first, and 52 s two hundred seconds later.
    RankFile file({.directory = directory.path()},
                  {.origin = 1000, .first = {.at = 1050, .seconds = -50}});
    file.add({.name = "a", .begin = 1050, .end = 1150});
    file.set_last_offset({.at = 1250, .seconds = -52});
  }
  const RankTimeline read = read_rank_file(directory.path(), 0);
  EXPECT_DOUBLE_EQ(read.events[0].begin, 0);
  EXPECT_DOUBLE_EQ(read.events[0].end, 99);
}

TEST(RankFile, ADirectoryWithoutTimelineHasNoRanks) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(read_timeline(directory.path()).empty());
}

TEST(RankFile, RefusesOtherFiles) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "rank-0.events") << std::string(100'000, 'x');
  const Error error = test::thrown_error([&] { read_timeline(directory.path()); });
  EXPECT_EQ(error.code, ErrorCode::data);
  EXPECT_NE(error.message.find("rank-0.events is not a timeline"), std::string::npos);
}

}  // namespace
}  // namespace renkei::timeline
