#include "comm/shared_memory/node_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "comm/transport/thread_transport.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

constexpr Operation kAllreduceOf100{
    .kind = OperationKind::allreduce, .dtype = DType::f32, .count = 100};

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(NodeBarrier, LetsNobodyPassBeforeAllHaveArrived) {
  for (const int ranks : {1, 2, 3, 8}) {
    std::vector<int> turns(static_cast<size_t>(ranks));  // plain: the barrier orders them
    run_as_threads(ranks, [&](Transport& t) {
      NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
      for (int turn = 0; turn < 300; ++turn) {
        turns[static_cast<size_t>(t.rank())] = turn;
        if (turn % 3 == 0)
          barrier.enter(kAllreduceOf100);
        else
          barrier.arrive_and_wait();
        for (const int other : turns) ASSERT_EQ(other, turn);
        barrier.arrive_and_wait();
      }
      EXPECT_EQ(barrier.operations(), 100);
    });
  }
}

TEST(NodeBarrier, WakesRanksThatHaveFallenAsleep) {
  run_as_threads(3, [&](Transport& t) {
    NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
    for (int turn = 0; turn < 6; ++turn) {
      if (turn % 3 == t.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const double begin = now_seconds();
      barrier.enter(kAllreduceOf100);
      EXPECT_LT(now_seconds() - begin, 30);
    }
  });
}

TEST(NodeBarrier, WorksAtAnOffsetOfItsRegion) {
  run_as_threads(2, [&](Transport& t) {
    const auto region = t.share(3 * NodeBarrier::kBytes);
    NodeBarrier first(t, region), second(t, region, 2 * NodeBarrier::kBytes);
    for (int turn = 0; turn < 10; ++turn) {
      first.enter(kAllreduceOf100);
      second.enter({});
    }
  });
}

TEST(NodeBarrier, JoinsOnlyTheRanksOfOneHost) {
  run_as_threads(4,
                 [&](Transport& t) {
                   NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
                   EXPECT_EQ(barrier.local_size(), 2);
                   EXPECT_EQ(barrier.local_rank(), t.rank() / 2);
                   // Hosts need not do the same.
                   for (int turn = 0; turn < 10 + t.rank() % 2; ++turn)
                     barrier.enter({.kind = OperationKind::allreduce,
                                    .dtype = DType::f32,
                                    .count = static_cast<uint64_t>(t.rank() % 2)});
                 },
                 {.hosts = {"a", "b", "a", "b"}});
}

// What every rank is told when rank 1 of 3 does something else as the third operation.
void expect_mismatch(const Operation& common, const Operation& odd, const std::string& expected,
                     const Call& common_call = {}, const Call& odd_call = {}) {
  run_as_threads(3,
                 [&](Transport& t) {
                   NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
                   barrier.enter(common);
                   barrier.enter(common);
                   const auto error = error_of([&] {
                     if (t.rank() == 1)
                       barrier.enter(odd, odd_call);
                     else
                       barrier.enter(common, common_call);
                   });
                   ASSERT_TRUE(error);
                   EXPECT_EQ(error->code, ErrorCode::communication);
                   EXPECT_EQ(error->message, expected);
                   EXPECT_EQ(error->rank, 1);
                   EXPECT_EQ(error->host, "b1");
                   EXPECT_FALSE(error->hint.empty());
                 },
                 {.hosts = {"b1", "b1", "b1"}});
}

TEST(NodeBarrier, NamesBothSidesOfDifferentCalls) {
  Operation odd = kAllreduceOf100;
  odd.count = 200;
  expect_mismatch(kAllreduceOf100, odd,
                  "rank 0 (host b1) called allreduce of 100 f32, but rank 1 (host b1) called "
                  "allreduce of 200 f32 as operation 2");
  odd = kAllreduceOf100;
  odd.dtype = DType::f64;
  expect_mismatch(kAllreduceOf100, odd,
                  "rank 0 (host b1) called allreduce of 100 f32, but rank 1 (host b1) called "
                  "allreduce of 100 f64 as operation 2");
  odd = kAllreduceOf100;
  odd.reduction = Reduction::max;
  expect_mismatch(kAllreduceOf100, odd,
                  "rank 0 (host b1) called allreduce of 100 f32 (sum), but rank 1 (host b1) called "
                  "allreduce of 100 f32 (max) as operation 2");
  odd = kAllreduceOf100;
  odd.place = 4096;
  expect_mismatch(
      kAllreduceOf100, odd,
      "rank 0 (host b1) called allreduce of 100 f32 in private memory, but rank 1 (host "
      "b1) called allreduce of 100 f32 at 0x1000 of the shared memory as operation 2");
  expect_mismatch(
      kAllreduceOf100, {},
      "rank 0 (host b1) called allreduce of 100 f32, but rank 1 (host b1) called barrier "
      "as operation 2");
}

TEST(NodeBarrier, TellsApartBucketsOfOneSizeAndStepsByTheirCalls) {
  expect_mismatch(kAllreduceOf100, kAllreduceOf100,
                  "rank 0 (host b1) called allreduce of 100 f32 for \"bucket 1\", but rank 1 (host "
                  "b1) called allreduce of 100 f32 for \"bucket 2\" as operation 2",
                  {.operation = "bucket 1"}, {.operation = "bucket 2"});
  expect_mismatch(kAllreduceOf100, kAllreduceOf100,
                  "rank 0 (host b1) called allreduce of 100 f32 in step 7, but rank 1 (host b1) "
                  "called allreduce of 100 f32 in step 8 as operation 2",
                  {.step = 7}, {.step = 8});
}

TEST(NodeBarrier, NamesTheRankThatStaysAwayAtTheDeadline) {
  std::atomic<int> told = 0;  // ranks that have run into the deadline
  run_as_threads(
      3,
      [&](Transport& t) {
        NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
        barrier.enter({.kind = OperationKind::all_gather, .dtype = DType::f16, .count = 9},
                      {.operation = "weights", .step = 6});
        if (t.rank() == 2) {
          while (told < 2) std::this_thread::yield();
          return;
        }
        const double begin = now_seconds();
        const auto error = error_of([&] {
          barrier.enter(kAllreduceOf100,
                        {.operation = "gradients", .step = 7, .timeout_seconds = 1});
        });
        ++told;
        EXPECT_GE(now_seconds() - begin, 1);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, ErrorCode::communication);
        EXPECT_THAT(error->message, HasSubstr("for rank 2 (host c) in allreduce of 100 f32 "
                                              "(gradients), operation 1, step 7"));
        EXPECT_THAT(
            error->message,
            HasSubstr("entered last is all_gather of 9 f16 (weights), operation 0, step 6"));
        EXPECT_EQ(error->rank, 2);
        EXPECT_EQ(error->host, "c");
        EXPECT_EQ(error->step, 7);
      },
      {.hosts = {"c", "c", "c"}});
}

TEST(NodeBarrier, KnowsThatARankHasEnteredNothingYet) {
  std::atomic<bool> over = false;
  run_as_threads(2, [&](Transport& t) {
    NodeBarrier barrier(t, t.share(NodeBarrier::kBytes));
    if (t.rank() == 1) {
      while (!over) std::this_thread::yield();
      return;
    }
    const auto error = error_of([&] { barrier.enter({}, {.timeout_seconds = 0.05}); });
    EXPECT_THROW(barrier.enter({}, {.timeout_seconds = 0.05}), Timeout);
    over = true;
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, HasSubstr("has entered nothing yet"));
  });
}

TEST(NodeBarrier, DoesNotWaitForARankThatHasLeft) {
  const double begin = now_seconds();
  run_as_threads(3, [&](Transport& t) {
    const auto region = t.share(NodeBarrier::kBytes);
    NodeBarrier barrier(t, region);
    barrier.enter({});
    if (t.rank() == 1) return;
    const auto error = error_of([&] { barrier.enter(kAllreduceOf100); });
    ASSERT_TRUE(error);
    // The first to give up leaves, too, and may be what the other one sees.
    EXPECT_THAT(error->message, HasSubstr("which has left"));
  });
  EXPECT_LT(now_seconds() - begin, 60);
}

}  // namespace
}  // namespace renkei::comm
