#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/choice/cost_measurement.h"
#include "comm/communicator.h"
#include "comm/transport/sub_transport.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

// Moves only when it is told to.
class HandClock : public Clock {
 public:
  double seconds() const override { return now; }
  std::atomic<double> now = 1000;
};

TEST(Clock, OfATransportDecidesWhenADeadlineHasPassed) {
  HandClock clock;
  std::atomic<bool> ended = false;
  run_as_threads(2,
                 [&](Transport& transport) {
                   if (transport.rank() == 1) {
                     for (; !ended; std::this_thread::yield()) clock.now = clock.now + 60;
                     return;
                   }
                   SubTransport view(transport, {0, 1}, 8);
                   std::byte nothing{};
                   Request request = view.receive(1, {&nothing, 1}, 0);
                   EXPECT_THROW(view.wait(request, {.timeout_seconds = 36'000}), Timeout);
                   ended = true;
                 },
                 {.clock = &clock});
  EXPECT_GE(clock.now, 37'000);
}

TEST(Clock, OfATransportDecidesInSharedMemoryToo) {
  HandClock clock;
  std::atomic<bool> created = false, ended = false;
  run_as_threads(2,
                 [&](Transport& transport) {
                   Communicator communicator(transport, {});
                   if (transport.rank() == 1) {
                     // Its creation waits, too, and must not see the hours pass.
                     while (!created) std::this_thread::yield();
                     for (; !ended; std::this_thread::yield()) clock.now = clock.now + 60;
                     return;
                   }
                   created = true;
                   EXPECT_THROW(communicator.barrier({.timeout_seconds = 36'000}), Timeout);
                   ended = true;
                 },
                 {.clock = &clock});
}

TEST(Clock, OfATransportIsTheOneOfTheRecords) {
  HandClock clock;
  run_as_threads(1,
                 [&](Transport& transport) {
                   Communicator communicator(transport, {});
                   clock.now = 2000;
                   communicator.barrier({});
                   EXPECT_EQ(communicator.recorder().last().entered_seconds, 2000);
                   EXPECT_EQ(communicator.recorder().last().left_seconds, 2000);
                   clock.now = 2007;
                   EXPECT_THAT(communicator.recorder().text(),
                               testing::HasSubstr("entered 7.000 s ago, took 0.000000 s"));
                 },
                 {.clock = &clock});
}

TEST(Clock, OfATransportIsTheOneThatLinksAreMeasuredBy) {
  const HandClock still;
  run_as_threads(2,
                 [](Transport& transport) {
                   const CostModel model = measure_cost_model(transport);
                   EXPECT_EQ(model.between.latency_seconds, 0);
                   EXPECT_GT(model.between.bytes_per_second, 1e12);
                   EXPECT_GT(model.reduce_bytes_per_second, 1e12);
                 },
                 {.hosts = {"a", "b"}, .clock = &still});
}

}  // namespace
}  // namespace renkei::comm
