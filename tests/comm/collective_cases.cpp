#include "tests/comm/collective_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/philox.h"
#include "comm/allreduce.h"
#include "comm/buffer/reference.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/all_to_all.h"
#include "comm/collectives/barrier.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/reduce_scatter.h"
#include "comm/communicator.h"
#include "comm/transport/sub_transport.h"
#include "tests/comm/patterns.h"
#include "tests/comm/sanitizer.h"

namespace renkei::comm {
namespace {

// A deadlock should fail with a name before the test program runs into its own time limit.
constexpr Call kCall{.timeout_seconds = 60};

constexpr Reduction kReductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                     Reduction::min};

// Those that reduced_pattern() knows.
constexpr Reduction kExactReductions[] = {Reduction::sum, Reduction::max, Reduction::min};

std::vector<size_t> counts_for(const Transport& transport) {
  const auto n = static_cast<size_t>(transport.size());
  return {0, 1, n - 1, n + 1, 4096, 100003};
}

// The same where each rank contributes: the largest is 100003 over all ranks.
std::vector<size_t> contributions_for(const Transport& transport) {
  std::vector<size_t> counts = counts_for(transport);
  counts.back() /= static_cast<size_t>(transport.size());
  return counts;
}

// Calls check(T{}) for each element type.
template <typename Check>
void for_numbers(Check check) {
  check(float{});
  check(double{});
  check(Half{});
  check(BFloat16{});
  check(int64_t{});
}

// What threads do to each other depends on the number of bytes, not on what they mean: the thread
// sanitizer, to which they are expensive, sees large buffers of one type only.
constexpr size_t kLarge = 5000;
template <typename T>
bool sanitizer_has_seen(size_t count) {
  return RENKEI_THREAD_SANITIZER && count > kLarge && !std::is_same_v<T, double>;
}
// Nor on the arithmetic: it sees all reductions of one type, and the sums of the others.
template <typename T>
bool sanitizer_has_seen(size_t count, Reduction reduction) {
  if (sanitizer_has_seen<T>(count)) return true;
  if (count > kLarge) return RENKEI_THREAD_SANITIZER && reduction != Reduction::mean;
  return RENKEI_THREAD_SANITIZER && !std::is_same_v<T, float> && reduction != Reduction::sum;
}

// Calls check(T{}, count, reduction) for all of them.
template <typename Check>
void for_reductions(const Transport& transport, Check check) {
  for (const size_t count : counts_for(transport))
    for (const Reduction reduction : kReductions)
      for_numbers([&](auto type) {
        if (!sanitizer_has_seen<decltype(type)>(count, reduction)) check(type, count, reduction);
      });
}

// Calls check(T{}) for each type that can be moved.
template <typename Check>
void for_all_types(size_t count, Check check) {
  const auto unless_seen = [&](auto type) {
    if (!sanitizer_has_seen<decltype(type)>(count)) check(type);
  };
  for_numbers(unless_seen);
  unless_seen(uint8_t{});
  unless_seen(std::byte{});
}

std::string where(const Transport& transport, size_t count) {
  return fmt::format("rank {} of {}, {} elements", transport.rank(), transport.size(), count);
}

template <typename T>
void check_broadcast_of(Transport& transport, size_t count) {
  // Which rank is the root changes the tree, not the size: large buffers from the last rank only.
  for (int root = count > 1000 ? transport.size() - 1 : 0; root < transport.size(); ++root) {
    std::vector<T> buffer = pattern<T>(transport.rank(), count);
    std::vector<T> expected = buffer;
    broadcast(transport, std::span(buffer), root, kCall);
    reference::broadcast(transport, std::span(expected), root);
    EXPECT_TRUE(same_bits<T>(buffer, expected)) << where(transport, count) << ", root " << root;
    EXPECT_TRUE(same_bits<T>(buffer, pattern<T>(root, count)))
        << where(transport, count) << ", root " << root;
  }
}

template <typename T>
void check_all_gather_of(Transport& transport, size_t count) {
  const std::vector<T> mine = pattern<T>(transport.rank(), count);
  std::vector<T> all(count * static_cast<size_t>(transport.size())), expected(all.size());
  all_gather(transport, std::span(mine), std::span(all), kCall);
  reference::all_gather(transport, std::span(mine), std::span(expected));
  EXPECT_TRUE(same_bits<T>(all, expected)) << where(transport, count);

  std::vector<T> in_place(all.size());
  const auto own_part =
      std::span(in_place).subspan(static_cast<size_t>(transport.rank()) * count, count);
  std::copy(mine.begin(), mine.end(), own_part.begin());
  all_gather(transport, own_part, std::span(in_place), kCall);
  EXPECT_TRUE(same_bits<T>(in_place, expected)) << "in place, " << where(transport, count);
}

// Rank r gives 0, count, 2 count, 0, count … elements.
template <typename T>
void check_all_gather_v_of(Transport& transport, size_t count) {
  std::vector<size_t> counts;
  for (int r = 0; r < transport.size(); ++r) counts.push_back(static_cast<size_t>(r % 3) * count);
  const int rank = transport.rank();
  const std::vector<T> mine = pattern<T>(rank, counts[static_cast<size_t>(rank)]);
  std::vector<T> all(std::accumulate(counts.begin(), counts.end(), size_t{0}));
  std::vector<T> expected(all.size());
  all_gather_v(transport, std::span(mine), std::span(all), counts, kCall);
  reference::all_gather_v(transport, std::span(mine), std::span(expected), counts);
  EXPECT_TRUE(same_bits<T>(all, expected)) << where(transport, count);
}

template <typename T>
void check_reduce_scatter_of(Transport& transport, size_t count, Reduction reduction) {
  std::vector<T> buffer = pattern<T>(transport.rank(), count);
  std::vector<T> expected_buffer = buffer;
  const auto chunk = elements_of<T>(reduce_scatter(transport, std::span(buffer), reduction, kCall));
  const auto expected =
      elements_of<T>(reference::reduce_scatter(transport, std::span(expected_buffer), reduction));
  EXPECT_TRUE(same_bits<T>(chunk, expected)) << where(transport, count);
  EXPECT_EQ(chunk.data() - buffer.data(), expected.data() - expected_buffer.data());
}

struct Variant {
  const char* name;
  AllreduceOptions options;
};

// Every algorithm, and the options that change the path through it. Segments of 100 bytes are no
// multiple of 8, and many for the window of a ring.
std::vector<Variant> variants_for(const Transport& transport) {
  std::vector<int> reversed(static_cast<size_t>(transport.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {
      {"automatic", {}},
      {"ring", {.algorithm = Algorithm::ring}},
      {"ring, reversed", {.algorithm = Algorithm::ring, .ring_order = reversed}},
      {"halving_doubling", {.algorithm = Algorithm::halving_doubling}},
      {"tree", {.algorithm = Algorithm::tree}},
      {"torus", {.algorithm = Algorithm::torus, .ring_order = reversed}},
      {"hierarchical", {.algorithm = Algorithm::hierarchical}},
      {"hierarchical, tree and halving_doubling",
       {.algorithm = Algorithm::hierarchical,
        .inner = Algorithm::tree,
        .outer = Algorithm::halving_doubling}},
      {"reproducible", {.reproducible = true}},
  };
}

// Segments so that buffers of these tests have several, but not thousands.
size_t test_segment_bytes(size_t count) {
  return count < 1000 ? 100 : 20'000;
}

template <typename T>
void check_allreduce_of(Transport& transport, size_t count, Reduction reduction) {
  const std::vector<T> mine = pattern<T>(transport.rank(), count);
  std::vector<T> expected = mine;
  reference::allreduce(transport, std::span(expected), reduction);
  for (Variant& variant : variants_for(transport)) {
    variant.options.segment_bytes = test_segment_bytes(count);
    std::vector<T> buffer = mine;
    allreduce(transport, std::span(buffer), reduction, kCall, variant.options);
    EXPECT_TRUE(same_bits<T>(buffer, expected))
        << variant.name << ", " << where(transport, count) << ", " << name_of(dtype_of<T>())
        << ", reduction " << static_cast<int>(reduction);
  }
}

template <typename T>
void check_same_bits_of(Transport& transport, size_t count) {
  const std::vector<T> mine = rough_pattern<T>(transport.rank(), count);
  std::vector<T> magnitudes = mine, expected = mine;
  for (T& value : magnitudes) value = std::abs(value);
  reference::allreduce(transport, std::span(expected), Reduction::sum);
  reference::allreduce(transport, std::span(magnitudes), Reduction::sum);
  // Either order of n-1 additions is off by at most (n-1) eps/2 of the sum of the magnitudes.
  const T bound = static_cast<T>(transport.size()) * std::numeric_limits<T>::epsilon();
  for (const Variant& variant : variants_for(transport)) {
    std::vector<T> buffer = mine;
    allreduce(transport, std::span(buffer), Reduction::sum, kCall, variant.options);
    std::vector<T> on_rank_0 = buffer;
    reference::broadcast(transport, std::span(on_rank_0), 0);
    EXPECT_TRUE(same_bits<T>(buffer, on_rank_0)) << variant.name << where(transport, count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i)
      if (!(std::abs(buffer[i] - expected[i]) <= bound * magnitudes[i])) ++wrong;
    EXPECT_EQ(wrong, 0u) << variant.name << where(transport, count);
  }
}

template <typename T>
void check_all_to_all_of(Transport& transport, size_t count) {
  const int n = transport.size(), r = transport.rank();
  const auto parts = static_cast<size_t>(n);
  const std::vector<T> from = pattern<T>(r, count * parts);
  std::vector<T> into(from.size()), expected;
  all_to_all(transport, std::span(from), std::span(into), kCall);
  for (int source = 0; source < n; ++source) {
    const auto theirs = pattern<T>(source, count * parts);
    const auto part = theirs.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(r) * count);
    expected.insert(expected.end(), part, part + static_cast<std::ptrdiff_t>(count));
  }
  EXPECT_TRUE(same_bits<T>(into, expected)) << where(transport, count);
}

// Rank r sends (r + 2 q) % 4 elements to rank q, or none at all.
void check_all_to_all_v_of(Transport& transport, size_t scale) {
  const int n = transport.size(), r = transport.rank();
  const auto count = [&](int from, int to) {
    return static_cast<size_t>((from + 2 * to) % 4) * scale;
  };
  std::vector<size_t> sent, received;
  std::vector<int64_t> from, expected;
  for (int q = 0; q < n; ++q) {
    sent.push_back(count(r, q));
    received.push_back(count(q, r));
    from.insert(from.end(), sent.back(), 100 * r + q);
    expected.insert(expected.end(), received.back(), 100 * q + r);
  }
  std::vector<int64_t> into(expected.size());
  all_to_all_v(transport, std::span(from), sent, std::span(into), received, kCall);
  EXPECT_EQ(into, expected) << where(transport, scale);
}

// One step of the random sequence: what it does is drawn from `random`, which is the same on every
// rank.
void check_random_collective(Transport& transport, Random& random, uint32_t salt) {
  const int n = transport.size(), r = transport.rank();
  const size_t count = random.below(4) == 0 ? random.below(5000) : random.below(20);
  const int root = static_cast<int>(random.below(static_cast<uint32_t>(n)));
  const Reduction reduction = kExactReductions[random.below(3)];
  std::vector<int64_t> buffer = pattern<int64_t>(r, count, salt);
  switch (random.below(5)) {
    case 0:
      barrier(transport, kCall);
      break;
    case 1:
      broadcast(transport, std::span(buffer), root, kCall);
      EXPECT_EQ(buffer, pattern<int64_t>(root, count, salt)) << "collective " << salt;
      break;
    case 2: {
      std::vector<int64_t> all(count * static_cast<size_t>(n)), expected;
      for (int from = 0; from < n; ++from) {
        const auto part = pattern<int64_t>(from, count, salt);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      all_gather(transport, std::span(buffer), std::span(all), kCall);
      EXPECT_EQ(all, expected) << "collective " << salt;
      break;
    }
    case 3: {
      const auto chunk =
          elements_of<int64_t>(reduce_scatter(transport, std::span(buffer), reduction, kCall));
      const auto expected = reduced_pattern<int64_t>(n, count, reduction, salt);
      const Range range = chunk_range(count, n, r);
      EXPECT_TRUE(same_bits<int64_t>(chunk, std::span(expected).subspan(range.begin, range.size())))
          << "collective " << salt;
      break;
    }
    default:
      allreduce(transport, std::span(buffer), reduction, kCall);
      EXPECT_EQ(buffer, reduced_pattern<int64_t>(n, count, reduction, salt))
          << "collective " << salt;
  }
}

}  // namespace

void check_barrier(Transport& transport) {
  // The steady clock is one for all processes of a machine.
  for (int late = 0; late < transport.size(); ++late) {
    if (transport.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    double entered = now_seconds();
    barrier(transport, kCall);
    double left = now_seconds();
    reference::allreduce(transport, std::span(&entered, 1), Reduction::max);
    reference::allreduce(transport, std::span(&left, 1), Reduction::min);
    EXPECT_GE(left, entered) << "a rank left before rank " << late << " had entered";
  }
}

void check_broadcast(Transport& transport) {
  for (const size_t count : counts_for(transport))
    for_all_types(count, [&](auto type) { check_broadcast_of<decltype(type)>(transport, count); });
}

void check_all_gather(Transport& transport) {
  for (const size_t count : contributions_for(transport))
    for_all_types(count, [&](auto type) { check_all_gather_of<decltype(type)>(transport, count); });
}

void check_all_gather_v(Transport& transport) {
  for (const size_t count : contributions_for(transport))
    for_all_types(count,
                  [&](auto type) { check_all_gather_v_of<decltype(type)>(transport, count); });
}

void check_reduce_scatter(Transport& transport) {
  for_reductions(transport, [&](auto type, size_t count, Reduction reduction) {
    check_reduce_scatter_of<decltype(type)>(transport, count, reduction);
  });
}

void check_allreduce(Transport& transport) {
  for_reductions(transport, [&](auto type, size_t count, Reduction reduction) {
    check_allreduce_of<decltype(type)>(transport, count, reduction);
  });
}

void check_allreduce_gives_same_bits(Transport& transport) {
  for (const size_t count : {1, 7, 4099}) {
    check_same_bits_of<float>(transport, count);
    check_same_bits_of<double>(transport, count);
  }
}

void check_all_to_all(Transport& transport) {
  for (const size_t count : {0, 1, 7, 4099})
    for_all_types(count, [&](auto type) { check_all_to_all_of<decltype(type)>(transport, count); });
  for (const size_t scale : {0, 1, 3001}) check_all_to_all_v_of(transport, scale);
}

void check_random_sequence(Transport& transport) {
  Random random(2024, RandomUse::shuffle, 0, 0);
  for (uint32_t salt = 1; salt <= 300; ++salt) check_random_collective(transport, random, salt);
}

void check_broadcast_above_2_31_bytes(Transport& transport) {
  const size_t words = (size_t{1} << 28) + 1001;  // of 8 bytes
  const auto memory = std::make_unique_for_overwrite<int64_t[]>(words);
  const std::span<int64_t> buffer(memory.get(), words);
  const int root = transport.size() - 1;
  if (transport.rank() == root) std::iota(buffer.begin(), buffer.end(), 5);
  broadcast(transport, buffer, root, kCall);
  if (transport.rank() == root) return;
  size_t wrong = 0;
  for (size_t i = 0; i < words; ++i) wrong += buffer[i] != static_cast<int64_t>(i) + 5;
  EXPECT_EQ(wrong, 0u);
}

void check_groups_share_memory(Transport& transport) {
  std::vector<int> ranks;
  float expected = 0;
  for (int rank = transport.size() - 1; rank >= 0; --rank) {
    if (rank % 2 != transport.rank() % 2) continue;
    ranks.push_back(rank);
    expected += static_cast<float>(rank + 1);
  }
  SubTransport group(transport, ranks, 16);
  Communicator communicator(group, {});
  EXPECT_EQ(communicator.local_size(), group.size());
  for (const size_t count : {size_t{1}, size_t{100'003}}) {
    const Buffer buffer = communicator.allocate(count, DType::f32);
    const std::span<float> values(reinterpret_cast<float*>(buffer.data), count);
    std::ranges::fill(values, static_cast<float>(transport.rank() + 1));
    communicator.allreduce(buffer, Reduction::sum, kCall);
    EXPECT_EQ(communicator.peers_can_read(buffer), group.size() > 1);
    EXPECT_EQ(std::ranges::count(values, expected), static_cast<int64_t>(count));
    communicator.barrier(kCall);
  }
}

void check_missing_rank_is_named(Transport& transport) {
  const int last = transport.size() - 1;
  if (last == 0) return;
  // Lives as long as the process: the receive is never completed.
  static int64_t never_written = 0;
  if (transport.rank() == 0) {
    const double begin = now_seconds();
    try {
      broadcast(transport, std::span(&never_written, 1), last,
                {.operation = "broadcast of the weights", .step = 7, .timeout_seconds = 0.2});
      ADD_FAILURE() << "the broadcast returned without its root";
    } catch (const Error& error) {
      const double waited = now_seconds() - begin;
      EXPECT_GE(waited, 0.2);
      EXPECT_EQ(error.code, ErrorCode::communication);
      EXPECT_EQ(error.rank, last);
      EXPECT_EQ(error.host, transport.host(last));
      EXPECT_EQ(error.step, 7);
      EXPECT_THAT(error.message,
                  testing::HasSubstr(fmt::format("for rank {} (host {}) in broadcast of the "
                                                 "weights, step 7",
                                                 last, transport.host(last))));
    }
  }
  barrier(transport, kCall);
}

}  // namespace renkei::comm
