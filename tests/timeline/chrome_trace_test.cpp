#include "timeline/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/base/temporary_directory.h"
#include "tests/timeline/perfetto_rules.h"

namespace renkei::timeline {
namespace {

using test::broken_rules;
using test::TemporaryDirectory;

nlohmann::json trace_of(const std::vector<RankTimeline>& ranks) {
  std::string text;
  write_chrome_trace(ranks, [&](std::string_view piece) { text += piece; });
  return nlohmann::json::parse(text);
}

std::vector<nlohmann::json> of_kind(const nlohmann::json& trace, const std::string& kind) {
  std::vector<nlohmann::json> events;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == kind) events.push_back(event);
  return events;
}

Event message(const char* name, double begin, double end, int stage, int peer) {
  return {.name = name,
          .category = Category::communication,
          .begin = begin,
          .end = end,
          .step = 0,
          .index = 2,
          .stage = stage,
          .peer = peer,
          .peer_stage = 1 - stage,
          .bytes = 4096};
}

TEST(ChromeTrace, HasTheEventsOfAllRanksInMicroseconds) {
  RankTimeline rank;
  rank.info = {.rank = 1, .host = "b \"x\""};
  rank.events = {{.name = "forward",
                  .category = Category::compute,
                  .begin = 0.5,
                  .end = 0.75,
                  .step = 3,
                  .index = 1,
                  .stage = 2}};
  const auto trace = trace_of({rank});
  const auto slices = of_kind(trace, "X");
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]["name"], "forward");
  EXPECT_EQ(slices[0]["pid"], 1);
  EXPECT_EQ(slices[0]["ts"], 500'000);
  EXPECT_EQ(slices[0]["dur"], 250'000);
  EXPECT_EQ(slices[0]["args"]["step"], 3);
  EXPECT_EQ(slices[0]["args"]["stage"], 2);
  EXPECT_THAT(broken_rules(trace), testing::IsEmpty());
}

TEST(ChromeTrace, DrawsAnArrowFromASendToItsReceive) {
  RankTimeline first, second;
  first.info.rank = 0;
  second.info.rank = 1;
  first.events = {message("send", 1, 1.1, 0, 1)};
  second.events = {message("receive", 0.5, 1.3, 1, 0)};
  const auto trace = trace_of({first, second});
  EXPECT_EQ(of_kind(trace, "s").at(0)["id"], of_kind(trace, "f").at(0)["id"]);
  EXPECT_THAT(broken_rules(trace), testing::IsEmpty());
}

TEST(ChromeTrace, GivesOverlappingSlicesThreadsOfTheirOwn) {
  RankTimeline rank;
  for (int i = 0; i < 6; ++i)
    rank.events.push_back({.name = "bucket",
                           .begin = 0.1 * i,
                           .end = 0.1 * i + 0.15 * (1 + i % 3),
                           .lane = kCommunicationLane});
  EXPECT_THAT(broken_rules(trace_of({rank})), testing::IsEmpty());
}

TEST(ChromeTrace, RoundingKeepsTasksWithinTheirStep) {
  RankTimeline rank;
  double now = 0;
  for (int64_t step = 0; step < 200; ++step) {
    StepRecord record{.step = step, .begin = now, .times = {}, .samples = 8, .memory_bytes = 1};
    for (int i = 0; i < 7; ++i) {
      const double end = now + 1e-6 / (3 + i);
      rank.events.push_back({.name = "forward", .begin = now, .end = end, .step = step});
      now = end;
    }
    record.times.seconds = now - record.begin;
    rank.steps.push_back(record);
  }
  const auto trace = trace_of({rank});
  EXPECT_THAT(broken_rules(trace), testing::IsEmpty());
  EXPECT_EQ(of_kind(trace, "C").size(), 400u);
}

TEST(PerfettoRules, SeeWhatIsBroken) {
  const auto slice = [](double ts, double duration) {
    return nlohmann::json{{"ph", "X"}, {"name", "a"}, {"pid", 0},
                          {"tid", 0},  {"ts", ts},    {"dur", duration}};
  };
  const nlohmann::json name{{"ph", "M"}, {"name", "thread_name"}, {"pid", 0}, {"tid", 0}};
  EXPECT_EQ(broken_rules({{"traceEvents", {name, slice(0, 2), slice(1, 2)}}}).size(), 1u);
  EXPECT_EQ(broken_rules({{"traceEvents", {slice(0, 2), slice(1, 1)}}}).size(), 1u);
  const nlohmann::json arrow{{"ph", "s"}, {"id", 1}, {"pid", 0}, {"tid", 0}, {"ts", 3}};
  EXPECT_EQ(broken_rules({{"traceEvents", {name, slice(0, 2), arrow}}}).size(), 2u);
}

TEST(ChromeTrace, AppearsAsAWholeFile) {
  const TemporaryDirectory directory;
  RankTimeline rank;
  rank.events = {{.name = "forward", .begin = 0, .end = 1}};
  write_chrome_trace(std::vector{rank}, directory / "timeline.json");
  EXPECT_EQ(of_kind(nlohmann::json::parse(read_file(directory / "timeline.json")), "X").size(), 1u);
}

}  // namespace
}  // namespace renkei::timeline
