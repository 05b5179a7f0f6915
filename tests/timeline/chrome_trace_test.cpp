#include "timeline/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace renkei::timeline {
namespace {

TEST(ChromeTrace, HasTheEventsOfAllRanksInMicroseconds) {
  const std::vector<Event> events{{.name = "forward",
                                   .category = Category::compute,
                                   .begin = 100.5,
                                   .end = 100.75,
                                   .step = 3,
                                   .index = 1}};
  const auto trace = nlohmann::json::parse(chrome_trace(
      {trace_events(events, 0, "a", 100), trace_events(events, 1, "b \"x\"", 100.25)}));
  std::vector<nlohmann::json> tasks;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") tasks.push_back(event);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0]["name"], "forward");
  EXPECT_EQ(tasks[0]["ts"], 500'000);
  EXPECT_EQ(tasks[0]["dur"], 250'000);
  EXPECT_EQ(tasks[0]["args"]["step"], 3);
  EXPECT_EQ(tasks[1]["pid"], 1);
  EXPECT_EQ(tasks[1]["ts"], 250'000);
}

TEST(Recorder, KeepsEventsOnlyWhenAsked) {
  for (const bool keep : {false, true}) {
    Recorder recorder(keep);
    recorder.begin_step(0);
    recorder.add({.name = "forward", .category = Category::compute, .begin = 1, .end = 3});
    recorder.end_step(4);
    EXPECT_EQ(recorder.steps()[0][Category::compute], 2);
    EXPECT_EQ(recorder.events().size(), keep ? 1u : 0u);
  }
}

}  // namespace
}  // namespace renkei::timeline
