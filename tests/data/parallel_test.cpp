#include "data/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace renkei::data {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (int threads : {0, 1, 4, 50})
    for (int64_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      parallel_for(count, threads, [&](int64_t index) { ++visits[static_cast<size_t>(index)]; });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
    }
}

TEST(ParallelFor, ThrowsTheErrorOfTheLowestIndex) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    try {
      parallel_for(1000, 4, [&](int64_t index) {
        if (index >= 37) throw std::runtime_error(std::to_string(index));
      });
      FAIL() << "no error was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "37");
    }
  }
}

TEST(ParallelFor, StopsSoonAfterAnError) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(parallel_for(1000000, 2,
                            [&](int64_t) {
                              ++calls;
                              throw std::runtime_error("first");
                            }),
               std::runtime_error);
  EXPECT_LE(calls, 2);
}

TEST(ParallelFor, ReportsGrowingProgressUpToTheTotal) {
  for (int64_t count : {1, 7, 100, 12345}) {
    std::vector<int64_t> seen;
    parallel_for(
        count, 4, [](int64_t) {},
        [&](int64_t done, int64_t total) {
          EXPECT_EQ(total, count);
          EXPECT_GT(done, seen.empty() ? 0 : seen.back());
          seen.push_back(done);
        });
    EXPECT_EQ(seen.back(), count);
    EXPECT_LE(seen.size(), 100u);
  }
}

TEST(ParallelFor, LetsProgressStopTheWork) {
  EXPECT_THROW(
      parallel_for(
          10, 2, [](int64_t) {}, [](int64_t, int64_t) { throw std::runtime_error("cancelled"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace renkei::data
