#include "comm/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

// What every rank believes after a deadline, when `reached[r]` is the operation that rank r has
// reached; -1: the rank does not answer.
std::vector<std::optional<int>> verdicts(const std::vector<int>& reached) {
  std::vector<std::optional<int>> blamed(reached.size());
  std::atomic<int64_t> undecided = std::ranges::count_if(reached, [](int r) { return r >= 0; });
  run_as_threads(static_cast<int>(reached.size()),
                 [&](Transport& transport) {
                   const auto r = static_cast<size_t>(transport.rank());
                   if (reached[r] < 0) {
                     while (undecided > 0) std::this_thread::yield();
                     return;
                   }
                   FlightRecorder recorder;
                   for (int i = 0; i <= reached[r]; ++i)
                     recorder.enter("allreduce", 7, 10, DType::f32);
                   Error timeout(ErrorCode::communication, "waited for a neighbour");
                   timeout.rank = -1;
                   blamed[r] = find_culprit(transport, recorder, timeout, 2).rank;
                   --undecided;
                 },
                 {.hosts = std::vector<std::string>(reached.size(), "node")});
  return blamed;
}

TEST(Verdict, ASilentRankIsBlamedByAll) {
  const auto blamed = verdicts({5, 5, -1, 5});
  for (const size_t rank : {0, 1, 3}) EXPECT_EQ(blamed[rank], 2);
}

TEST(Verdict, WhenAllAnswerTheOneBehindIsBlamed) {
  for (const auto& blamed : verdicts({5, 4, 5})) EXPECT_EQ(blamed, 1);
}

TEST(Verdict, WhenAllAreEquallyFarTheTimeoutStands) {
  for (const auto& blamed : verdicts({5, 5})) EXPECT_EQ(blamed, -1);
}

TEST(FlightRecorder, KeepsTheLastOperationsOnly) {
  FlightRecorder recorder(3);
  EXPECT_EQ(recorder.last().sequence, -1);
  for (int i = 0; i < 5; ++i) recorder.enter("broadcast", i, 1, DType::f64);
  recorder.leave(4);
  recorder.leave(0);  // long gone
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].sequence, 2);
  EXPECT_EQ(records[2].sequence, 4);
  EXPECT_GT(records[2].left_seconds, 0);
  EXPECT_NE(recorder.text().find("#3 step 3: broadcast of 1 f64"), std::string::npos);
  EXPECT_NE(recorder.text().find("still inside"), std::string::npos);
}

}  // namespace
}  // namespace renkei::comm
