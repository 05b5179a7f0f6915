// The oracles themselves, against what every rank can compute alone.

#include "comm/buffer/reference.h"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/buffer/chunk_range.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

void for_ranks_and_counts(const std::function<void(Transport&, size_t)>& body) {
  for (const int ranks : {1, 2, 5})
    for (const size_t count : {0, 1, 7, 1000})
      for (const bool rendezvous : {false, true})
        run_as_threads(ranks, [&](Transport& transport) { body(transport, count); },
                       {.rendezvous = rendezvous});
}

TEST(Reference, BarrierWaitsForEveryRank) {
  std::atomic<int> entered = 0;
  run_as_threads(5, [&](Transport& transport) {
    ++entered;
    reference::barrier(transport);
    EXPECT_EQ(entered, 5);
  });
}

TEST(Reference, BroadcastCopiesFromEveryRoot) {
  for_ranks_and_counts([](Transport& transport, size_t count) {
    for (int root = 0; root < transport.size(); ++root) {
      auto buffer = pattern<uint8_t>(transport.rank(), count);
      reference::broadcast(transport, std::span(buffer), root);
      EXPECT_EQ(buffer, pattern<uint8_t>(root, count));
    }
  });
}

TEST(Reference, AllGatherConcatenatesInRankOrder) {
  for_ranks_and_counts([](Transport& transport, size_t count) {
    std::vector<float> all(count * static_cast<size_t>(transport.size())), expected;
    for (int rank = 0; rank < transport.size(); ++rank) {
      const auto part = pattern<float>(rank, count);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const auto mine = pattern<float>(transport.rank(), count);
    reference::all_gather(transport, std::span(mine), std::span(all));
    EXPECT_EQ(all, expected);
  });
}

TEST(Reference, AllreduceAndReduceScatterReduceInRankOrder) {
  for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min})
    for_ranks_and_counts([&](Transport& transport, size_t count) {
      const auto expected = reduced_pattern<double>(transport.size(), count, reduction);
      auto buffer = pattern<double>(transport.rank(), count);
      reference::allreduce(transport, std::span(buffer), reduction);
      EXPECT_EQ(buffer, expected);

      buffer = pattern<double>(transport.rank(), count);
      const auto chunk =
          elements_of<double>(reference::reduce_scatter(transport, std::span(buffer), reduction));
      const Range range = chunk_range(count, transport.size(), transport.rank());
      EXPECT_TRUE(same_bits<double>(chunk, std::span(expected).subspan(range.begin, range.size())));
    });
}

}  // namespace
}  // namespace renkei::comm
