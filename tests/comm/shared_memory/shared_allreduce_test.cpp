#include "comm/shared_memory/shared_allreduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/error.h"
#include "comm/buffer/chunk_range.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/patterns.h"
#include "tests/comm/sanitizer.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64};
constexpr Reduction kReductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                     Reduction::min};

// The numbers of a rank, whose sums depend on their order, in memory of their own.
std::vector<std::byte> numbers(int rank, size_t count, DType dtype, int salt = 0) {
  std::vector<std::byte> bytes(count * size_of(dtype));
  const Buffer buffer(bytes.data(), count, dtype);
  const int seed = rank + 100 * salt;
  const auto fill = [&](const auto& values) {
    if (count > 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  };
  if (dtype == DType::f64) fill(rough_pattern<double>(seed, count));
  if (dtype == DType::i64) fill(rough_pattern<int64_t>(seed, count));
  if (dtype == DType::f32) fill(rough_pattern<float>(seed, count));
  if (size_of(dtype) == 2) {
    auto wide = pattern<float>(seed, count);
    for (float& value : wide) value /= 7;
    convert(buffer, Buffer(std::span(wide)));
  }
  return bytes;
}

// One call of the tested kernel over all ranks' numbers: the sequential sum in rank order.
std::vector<std::byte> expected_of(int ranks, size_t count, DType dtype, Reduction reduction,
                                   int salt = 0) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(numbers(rank, count, dtype, salt));
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<std::byte> result(count * size_of(dtype));
  reduce_many({result.data(), count, dtype}, sources, reduction);
  return result;
}

void fill(const Buffer& buffer, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(buffer.data, bytes.data(), bytes.size());
}

bool holds(const Buffer& buffer, const std::vector<std::byte>& bytes) {
  return buffer.bytes() == bytes.size() &&
         (bytes.empty() || std::memcmp(buffer.data, bytes.data(), bytes.size()) == 0);
}

constexpr size_t kLargest = 100003;
constexpr size_t kCounts[] = {0, 1, 3, 7, 1000, 4096, 4097, kLargest};

// Sanitizers take their time, and all reductions and types go the same way.
bool is_covered(size_t count, DType dtype, Reduction reduction) {
  if (RENKEI_THREAD_SANITIZER && dtype != DType::f64 && reduction != Reduction::sum) return true;
  return count == kLargest && reduction != Reduction::mean;
}

TEST(SharedAllreduce, LeavesTheSequentialSumInSharedBuffersOfEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const DType dtype : kTypes)
      for (const Reduction reduction : kReductions) {
        std::vector<std::vector<std::byte>> expected;
        for (const size_t count : kCounts)
          expected.push_back(is_covered(count, dtype, reduction)
                                 ? std::vector<std::byte>()
                                 : expected_of(ranks, count, dtype, reduction));
        run_as_threads(ranks, [&](Transport& t) {
          SharedMemory memory(t);
          const Buffer all = memory.allocate(kLargest + 5, dtype);
          for (size_t i = 0; i < std::size(kCounts); ++i) {
            if (is_covered(kCounts[i], dtype, reduction)) continue;
            const Buffer buffer = all.part(i % 4, kCounts[i]);  // not always at a cache line
            ASSERT_TRUE(memory.owns(buffer));
            fill(buffer, numbers(t.rank(), kCounts[i], dtype));
            memory.allreduce(buffer, reduction);
            EXPECT_TRUE(holds(buffer, expected[i]))
                << kCounts[i] << ' ' << name_of(dtype) << ' ' << name_of(reduction);
          }
        });
      }
}

TEST(SharedAllreduce, LeavesTheSequentialSumInPrivateBuffersOfEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const DType dtype : kTypes)
      for (const Reduction reduction : kReductions) {
        std::vector<std::vector<std::byte>> expected;
        for (const size_t count : kCounts)
          expected.push_back(is_covered(count, dtype, reduction)
                                 ? std::vector<std::byte>()
                                 : expected_of(ranks, count, dtype, reduction));
        run_as_threads(ranks, [&](Transport& t) {
          SharedMemory memory(t, {.piece_bytes = 32 << 10});
          for (size_t i = 0; i < std::size(kCounts); ++i) {
            if (is_covered(kCounts[i], dtype, reduction)) continue;
            auto bytes = numbers(t.rank(), kCounts[i], dtype);
            const Buffer buffer(bytes.data(), kCounts[i], dtype);
            memory.allreduce(buffer, reduction);
            EXPECT_TRUE(holds(buffer, expected[i]))
                << kCounts[i] << ' ' << name_of(dtype) << ' ' << name_of(reduction);
          }
        });
      }
}

TEST(SharedAllreduce, HandlesBuffersLargerThanTheCaches) {
  // Several pieces are enough for the thread sanitizer, which knows no caches.
  constexpr size_t kCount = (RENKEI_THREAD_SANITIZER ? 1 << 19 : 3 << 20) + 17;
  for (const int ranks : {2, 3}) {
    const auto expected = expected_of(ranks, kCount, DType::f32, Reduction::sum);
    run_as_threads(ranks, [&](Transport& t) {
      SharedMemory memory(t);
      const Buffer shared = memory.allocate(kCount, DType::f32);
      auto bytes = numbers(t.rank(), kCount, DType::f32);
      fill(shared, bytes);
      memory.allreduce(shared, Reduction::sum);
      EXPECT_TRUE(holds(shared, expected));
      const Buffer owned(bytes.data(), kCount, DType::f32);
      memory.allreduce(owned, Reduction::sum);
      EXPECT_TRUE(holds(owned, expected));
    });
  }
}

TEST(SharedAllreduce, LeavesTheSameBitsWhoeverDoesTheWork) {
  constexpr size_t kCount = (size_t{900} << 10) / sizeof(float) + 5;  // a few blocks for each rank
  for (const int ranks : {2, 3, 4}) {
    const auto sum = expected_of(ranks, kCount, DType::f32, Reduction::sum);
    run_as_threads(ranks, [&](Transport& t) {
      SharedMemory memory(t, {.help_bytes = 0});
      const Buffer buffer = memory.allocate(kCount, DType::f32);
      const auto input = numbers(t.rank(), kCount, DType::f32);
      for (int turn = 0; turn < 4; ++turn) {
        fill(buffer, input);
        // Who comes late finds its part done.
        if (t.rank() == turn % ranks) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        memory.allreduce(buffer, Reduction::sum);
        EXPECT_TRUE(holds(buffer, sum));
        memory.barrier();

        fill(buffer, input);
        memory.reduce_scatter(buffer, Reduction::sum);
        auto expected = input;
        const Range mine = chunk_range(kCount, ranks, t.rank());
        std::copy(sum.begin() + static_cast<int64_t>(mine.begin * sizeof(float)),
                  sum.begin() + static_cast<int64_t>(mine.end * sizeof(float)),
                  expected.begin() + static_cast<int64_t>(mine.begin * sizeof(float)));
        EXPECT_TRUE(holds(buffer, expected));
        memory.barrier();
      }
    });
  }
}

TEST(SharedAllreduce, KeepsItsSlotsApartInRandomSequences) {
  for (const int ranks : {2, 3, 6}) {
    run_as_threads(ranks, [&](Transport& t) {
      SharedMemory memory(t, {.piece_bytes = 4096, .small_bytes = 512});
      const Buffer all = memory.allocate(10000, DType::f32);
      std::mt19937 random(5);  // the same on all ranks
      for (int turn = 0; turn < 150; ++turn) {
        const size_t count = random() % (random() % 2 == 0 ? 128 : 10000);
        const auto reduction = kReductions[random() % 4];
        auto bytes = numbers(t.rank(), count, DType::f32, turn);
        const bool shared = random() % 2 == 0;
        const Buffer buffer = shared ? all.part(random() % (10001 - count), count)
                                     : Buffer(bytes.data(), count, DType::f32);
        if (shared) fill(buffer, bytes);
        memory.allreduce(buffer, reduction);
        ASSERT_TRUE(holds(buffer, expected_of(ranks, count, DType::f32, reduction, turn)));
      }
    });
  }
}

TEST(SharedReduceScatter, LeavesEachRankItsChunkAndTheRestAsItWas) {
  for (const int ranks : {1, 2, 3, 8})
    for (const DType dtype : kTypes)
      for (const size_t count : {0, 1, 5, 4099}) {
        const auto expected = expected_of(ranks, count, dtype, Reduction::mean);
        run_as_threads(ranks, [&](Transport& t) {
          SharedMemory memory(t);
          const Buffer buffer = memory.allocate(count, dtype);
          auto bytes = numbers(t.rank(), count, dtype);
          fill(buffer, bytes);
          memory.reduce_scatter(buffer, Reduction::mean);
          const Range mine = chunk_range(count, ranks, t.rank());
          for (size_t i = mine.begin * size_of(dtype); i < mine.end * size_of(dtype); ++i)
            bytes[i] = expected[i];
          EXPECT_TRUE(holds(buffer, bytes));
          memory.all_gather(buffer);
          EXPECT_TRUE(holds(buffer, expected));
        });
      }
}

TEST(SharedAllGather, MovesBytesToo) {
  run_as_threads(3, [&](Transport& t) {
    SharedMemory memory(t);
    const Buffer buffer = memory.allocate(10, DType::u8);
    const Range mine = chunk_range(10, 3, t.rank());
    for (size_t i = mine.begin; i < mine.end; ++i) buffer.data[i] = static_cast<std::byte>(i + 1);
    memory.all_gather(buffer);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(buffer.data[i], static_cast<std::byte>(i + 1));
  });
}

TEST(SharedMemory, IsZeroAndAddressableByThePeers) {
  run_as_threads(3, [&](Transport& t) {
    SharedMemory memory(t);
    const Buffer first = memory.allocate(1000, DType::i64), second = memory.allocate(7, DType::f32);
    for (const std::byte byte : first.span()) ASSERT_EQ(byte, std::byte{0});
    memory.barrier();
    reinterpret_cast<int64_t*>(first.data)[9] = t.rank() + 1;
    memory.barrier();
    for (int local = 0; local < 3; ++local) {
      const Buffer copy = memory.copy_of(local, first.part(9, 1));
      EXPECT_EQ(*reinterpret_cast<const int64_t*>(copy.data), local + 1);
    }
    EXPECT_TRUE(memory.owns(second.part(3, 4)));
    int64_t elsewhere = 0;
    EXPECT_FALSE(memory.owns(std::span(&elsewhere, 1)));
    memory.barrier();
  });
}

TEST(SharedMemory, JoinsTheRanksOfEachHost) {
  run_as_threads(4,
                 [&](Transport& t) {
                   SharedMemory memory(t);
                   const Buffer buffer = memory.allocate(5000, DType::i64);
                   auto* const values = reinterpret_cast<int64_t*>(buffer.data);
                   for (size_t i = 0; i < 5000; ++i) values[i] = t.rank();
                   memory.allreduce(buffer, Reduction::sum);
                   for (size_t i = 0; i < 5000; ++i)
                     ASSERT_EQ(values[i], t.rank() % 2 == 0 ? 2 : 4);
                 },
                 {.hosts = {"a", "b", "a", "b"}});
}

// Rank 1 calls something else; every rank must be told.
void expect_error(const std::function<void(SharedMemory&, Buffer, bool odd)>& body,
                  const std::string& message) {
  run_as_threads(3, [&](Transport& t) {
    SharedMemory memory(t);
    const Buffer buffer = memory.allocate(100000, DType::f32);
    try {
      body(memory, buffer, t.rank() == 1);
      ADD_FAILURE() << "rank " << t.rank() << " was not told";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::communication);
      EXPECT_THAT(error.message, HasSubstr(message));
      EXPECT_EQ(error.rank, 1);
    }
  });
}

TEST(SharedAllreduce, TellsAllRanksWhenTheirCallsDiffer) {
  expect_error(
      [](SharedMemory& memory, Buffer all, bool odd) {
        memory.allreduce(all.part(0, odd ? 90000 : 80000), Reduction::sum);
      },
      "called allreduce of 80000 f32, but rank 1 (host thread-host) called allreduce of 90000 f32");
  expect_error(
      [](SharedMemory& memory, Buffer all, bool odd) {
        memory.allreduce(Buffer(all.data, 100, odd ? DType::f16 : DType::f32), Reduction::sum);
      },
      "called allreduce of 100 f32, but rank 1 (host thread-host) called allreduce of 100 f16");
  expect_error(
      [](SharedMemory& memory, Buffer all, bool odd) {
        memory.allreduce(all, odd ? Reduction::max : Reduction::sum);
      },
      "called allreduce of 100000 f32 (sum), but rank 1 (host thread-host) called allreduce of "
      "100000 f32 (max)");
  expect_error([](SharedMemory& memory, Buffer all,
                  bool odd) { memory.allreduce(all.part(odd ? 1 : 0, 90000), Reduction::sum); },
               "of the shared memory");
  expect_error(
      [](SharedMemory& memory, Buffer all, bool odd) {
        std::vector<float> owned(100000);
        memory.allreduce(odd ? Buffer(std::span(owned)) : all, Reduction::sum);
      },
      "called allreduce of 100000 f32 in private memory");
  expect_error(
      [](SharedMemory& memory, Buffer all, bool odd) {
        if (odd)
          memory.all_gather(all);
        else
          memory.reduce_scatter(all, Reduction::sum);
      },
      "called reduce_scatter of 100000 f32, but rank 1 (host thread-host) called all_gather of "
      "100000 f32");
  expect_error(
      [](SharedMemory& memory, Buffer, bool odd) { memory.allocate(odd ? 5 : 6, DType::f32); },
      "called allocate of 6 f32, but rank 1 (host thread-host) called allocate of 5 f32");
}

TEST(SharedAllreduce, NamesTheRankThatStaysAway) {
  std::atomic<int> told = 0;
  run_as_threads(3, [&](Transport& t) {
    SharedMemory memory(t);
    const Buffer buffer = memory.allocate(100000, DType::f32);
    if (t.rank() == 2) {
      while (told < 2) std::this_thread::yield();
      return;
    }
    try {
      memory.allreduce(buffer, Reduction::sum,
                       {.operation = "gradients", .step = 3, .timeout_seconds = 1});
      ADD_FAILURE() << "rank " << t.rank() << " went on without rank 2";
    } catch (const Error& error) {
      EXPECT_EQ(error.rank, 2);
      EXPECT_EQ(error.step, 3);
      EXPECT_THAT(error.message, HasSubstr("for rank 2 (host thread-host) in allreduce of 100000 "
                                           "f32 (gradients), operation 1, step 3"));
    }
    ++told;
  });
}

TEST(SharedAllreduce, DoesNotHangWhenAnotherRankFails) {
  try {
    run_as_threads(3, [&](Transport& t) {
      SharedMemory memory(t);
      const Buffer buffer = memory.allocate(100000, DType::f32);
      if (t.rank() == 1) throw Error(ErrorCode::data, "rank 1 lost its data");
      memory.allreduce(buffer, Reduction::sum);
    });
    FAIL() << "no rank failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.message, "rank 1 lost its data");
  }
}

TEST(SharedMemory, RefusesToReduceBytesAndPrivateChunks) {
  run_as_threads(2, [&](Transport& t) {
    SharedMemory memory(t);
    std::vector<float> owned(100);
    EXPECT_THROW(memory.allreduce(memory.allocate(100, DType::u8), Reduction::sum), Error);
    EXPECT_THROW(memory.reduce_scatter(std::span(owned), Reduction::sum), Error);
    EXPECT_THROW(memory.all_gather(std::span(owned)), Error);
  });
}

}  // namespace
}  // namespace renkei::comm
