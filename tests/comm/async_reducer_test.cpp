#include "comm/async_reducer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace renkei::comm {
namespace {

TEST(AsyncReducer, ReducesInTheAgreedOrderWhateverTheOrderOfSubmission) {
  for (const bool overlap : {false, true}) {
    std::vector<int> order;
    AsyncReducer reducer(
        4, [&](int bucket, int64_t) { order.push_back(bucket); }, overlap);
    for (int64_t step = 0; step < 50; ++step) {
      order.clear();
      reducer.start(step);
      for (const int bucket : {2, 0, 3, 1}) reducer.submit(bucket);
      reducer.wait();
      EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
    }
  }
}

TEST(AsyncReducer, WorksWhileTheCallerGoesOn) {
  std::atomic<int> done{0};
  AsyncReducer reducer(
      2, [&](int, int64_t) { ++done; }, true);
  reducer.start(0);
  reducer.submit(0);
  // Nobody waits, and yet the first bucket gets reduced; the second one does not, it is not ready.
  while (done == 0) std::this_thread::yield();
  EXPECT_EQ(done, 1);
  reducer.wait();
  EXPECT_EQ(done, 2);
}

TEST(AsyncReducer, WithoutOverlapNothingHappensBeforeWait) {
  int done = 0;
  AsyncReducer reducer(
      2, [&](int, int64_t step) { done += static_cast<int>(step); }, false);
  reducer.start(7);
  reducer.submit(0);
  EXPECT_EQ(done, 0);
  reducer.wait();
  EXPECT_EQ(done, 14);
}

TEST(AsyncReducer, AFailureReachesTheOneWhoWaits) {
  for (const bool overlap : {false, true}) {
    AsyncReducer reducer(
        3,
        [](int bucket, int64_t) {
          if (bucket == 1) throw std::runtime_error("lost");
        },
        overlap);
    reducer.start(0);
    reducer.submit(0);
    EXPECT_THROW(reducer.wait(), std::runtime_error);
  }
}

TEST(AsyncReducer, LeavesUndoneWhatHasNotBegunWhenItEnds) {
  std::atomic<int> done{0};
  const auto count = [&](int, int64_t) { ++done; };
  for (const bool overlap : {false, true}) {
    AsyncReducer never_started(3, count, overlap);
    AsyncReducer half_submitted(3, count, overlap);
    half_submitted.start(0);
    half_submitted.submit(2);  // it is not its turn
  }
  EXPECT_EQ(done, 0);
}

TEST(AsyncReducer, EndsWhatHasBegunBeforeItEnds) {
  std::atomic<bool> begun{false}, ended{false};
  {
    AsyncReducer reducer(
        1,
        [&](int, int64_t) {
          begun = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          ended = true;
        },
        true);
    reducer.start(0);
    reducer.submit(0);
    while (!begun) std::this_thread::yield();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace renkei::comm
