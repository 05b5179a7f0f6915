// Allreduce over layouts of hosts, its options, and what it says when ranks disagree. That every
// algorithm gives the right sums is in collective_cases.cpp.

#include "comm/allreduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.h"
#include "comm/buffer/chunk_range.h"
#include "comm/buffer/reference.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/reduce_scatter.h"
#include "comm/transport/sub_transport.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;
using Hosts = std::vector<std::string>;

const std::vector<Hosts> kLayouts = {
    {"a", "a", "b", "b"},                      // 2 + 2
    {"a", "b", "a", "b"},                      // the same, dealt out
    {"a", "a", "a", "b"},                      // 3 + 1
    {"a", "b", "c", "d"},                      // 1 each
    {"a", "a", "b", "b", "c", "c", "d", "d"},  // 4 x 2
    {"a", "b", "b", "a", "b", "a"},            // 2 x 3, mixed
    {"a", "b", "b", "c", "c", "c"},            // 1 + 2 + 3
};

void on_layout(const Hosts& hosts, bool rendezvous, const std::function<void(Transport&)>& body) {
  run_as_threads(static_cast<int>(hosts.size()), body, {.hosts = hosts, .rendezvous = rendezvous});
}

template <typename T>
void check_hierarchical(Transport& transport, size_t count, Reduction reduction) {
  const std::vector<T> mine = pattern<T>(transport.rank(), count);
  std::vector<T> expected = mine;
  reference::allreduce(transport, std::span(expected), reduction);
  for (const Algorithm inner : {Algorithm::automatic, Algorithm::halving_doubling, Algorithm::tree})
    for (const Algorithm outer : {Algorithm::automatic, Algorithm::ring, Algorithm::torus,
                                  Algorithm::halving_doubling, Algorithm::tree}) {
      std::vector<T> buffer = mine;
      allreduce(transport, std::span(buffer), reduction, {},
                {.algorithm = Algorithm::hierarchical,
                 .segment_bytes = 1000,
                 .inner = inner,
                 .outer = outer});
      EXPECT_TRUE(same_bits<T>(buffer, expected))
          << "rank " << transport.rank() << ", " << count << " elements, inner " << name_of(inner)
          << ", outer " << name_of(outer);
    }
}

TEST(HierarchicalAllreduce, EqualsTheReferenceOnEveryLayoutOfHosts) {
  for (const Hosts& hosts : kLayouts)
    for (const bool rendezvous : {false, true})
      on_layout(hosts, rendezvous, [](Transport& transport) {
        for (const size_t count : {0, 1, 5, 4099}) {
          check_hierarchical<float>(transport, count, Reduction::mean);
          check_hierarchical<BFloat16>(transport, count, Reduction::sum);
          check_hierarchical<int64_t>(transport, count, Reduction::max);
        }
      });
}

// Counts what goes to other hosts.
class CountingTransport : public SubTransport {
 public:
  explicit CountingTransport(Transport& parent) : SubTransport(parent, all(parent), 16) {}
  Request send(int to, std::span<const std::byte> bytes, int tag) override {
    if (host(to) != host(rank())) bytes_between_hosts += bytes.size();
    return SubTransport::send(to, bytes, tag);
  }
  size_t bytes_between_hosts = 0;

 private:
  static std::vector<int> all(const Transport& parent) {
    std::vector<int> ranks;
    for (int rank = 0; rank < parent.size(); ++rank) ranks.push_back(rank);
    return ranks;
  }
};

int64_t bytes_between_hosts(const Hosts& hosts, size_t count, const AllreduceOptions& options) {
  std::mutex mutex;
  int64_t total = 0;
  on_layout(hosts, false, [&](Transport& transport) {
    CountingTransport counting(transport);
    std::vector<float> buffer(count);
    AllreduceOptions unchecked = options;
    unchecked.check = Check::nothing;
    allreduce(counting, std::span(buffer), Reduction::sum, {}, unchecked);
    std::lock_guard lock(mutex);
    total += static_cast<int64_t>(counting.bytes_between_hosts);
  });
  return total;
}

TEST(HierarchicalAllreduce, SendsHalfTheBytesOfAnInterleavedRingWithTwoRanksAHost) {
  const Hosts interleaved = {"a", "b", "c", "a", "b", "c"};
  const size_t count = 6000;
  const int64_t bytes = count * sizeof(float);
  const int64_t flat = bytes_between_hosts(interleaved, count, {.algorithm = Algorithm::ring});
  const int64_t hierarchical =
      bytes_between_hosts(interleaved, count, {.algorithm = Algorithm::hierarchical});
  EXPECT_EQ(flat, 6 * 2 * 5 * bytes / 6);          // each of 6 ranks sends all it sends elsewhere
  EXPECT_EQ(hierarchical, 3 * 2 * 2 * bytes / 3);  // 2 (H-1)/H from each of 3 hosts
  EXPECT_LE(2 * hierarchical, flat);
}

TEST(WireAllreduce, SendsHalfTheBytes) {
  const size_t count = 60000;
  const int64_t f32 = bytes_between_hosts({"a", "b", "c"}, count, {.algorithm = Algorithm::ring});
  const int64_t f16 = bytes_between_hosts({"a", "b", "c"}, count,
                                          {.algorithm = Algorithm::ring, .wire = DType::f16});
  EXPECT_NEAR(static_cast<double>(f16), static_cast<double>(f32) / 2,
              static_cast<double>(f32) / 100);
}

// What shared memory will do, with all buffers of a host in one table.
TEST(HierarchicalAllreduce, TakesAnotherWayInsideTheHost) {
  class CountedInside : public InsideHost {
   public:
    explicit CountedInside(InsideHost& other) : other_(other) {}
    void reduce_scatter(Buffer buffer, Reduction reduction, const Call& call) override {
      ++calls;
      other_.reduce_scatter(buffer, reduction, call);
    }
    void all_gather(Buffer buffer, const Call& call) override {
      ++calls;
      other_.all_gather(buffer, call);
    }
    void reduce(Buffer buffer, Reduction reduction, const Call& call) override {
      other_.reduce(buffer, reduction, call);
    }
    void broadcast(Buffer buffer, const Call& call) override { other_.broadcast(buffer, call); }
    int calls = 0;

   private:
    InsideHost& other_;
  };
  on_layout({"a", "b", "a", "b"}, true, [](Transport& transport) {
    SubTransport host(transport, local_ranks(transport), 20);
    const auto messages = inside_host_by_messages(host);
    CountedInside inside(*messages);
    auto buffer = pattern<double>(transport.rank(), 1001);
    allreduce(transport, std::span(buffer), Reduction::sum, {},
              {.algorithm = Algorithm::hierarchical, .inside = &inside});
    EXPECT_EQ(buffer, reduced_pattern<double>(4, 1001, Reduction::sum));
    EXPECT_EQ(inside.calls, 2);
  });
}

// The buffer of rank 0 after an allreduce of rough values.
template <typename T>
std::vector<T> rough_sum(const Hosts& hosts, Reduction reduction, const AllreduceOptions& options) {
  std::vector<T> result;
  on_layout(hosts, false, [&](Transport& transport) {
    auto buffer = rough_pattern<T>(transport.rank(), 10007);
    allreduce(transport, std::span(buffer), reduction, {}, options);
    if (transport.rank() == 0) result = buffer;
  });
  return result;
}

template <typename T>
void check_reproducible(Reduction reduction) {
  // In rank order, 16-bit floats accumulated in f32 and rounded once.
  constexpr int kRanks = 6;
  std::vector<std::vector<T>> inputs;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < kRanks; ++rank) inputs.push_back(rough_pattern<T>(rank, 10007));
  for (const auto& input : inputs)
    sources.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<T> expected(inputs[0].size());
  reduce_many(std::span(expected), sources, reduction);

  for (const Hosts& hosts :
       {Hosts(6, "one"), Hosts{"a", "b", "b", "a", "b", "a"}, Hosts{"a", "b", "b", "c", "c", "c"},
        Hosts{"a", "b", "c", "d", "e", "f"}})
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring, Algorithm::tree,
                                      Algorithm::torus, Algorithm::hierarchical})
      for (const size_t segment_bytes : {0, 1000})
        EXPECT_TRUE(same_bits<T>(rough_sum<T>(hosts, reduction,
                                              {.algorithm = algorithm,
                                               .segment_bytes = segment_bytes,
                                               .ring_order = {5, 0, 1, 4, 3, 2},
                                               .reproducible = true}),
                                 expected))
            << name_of(algorithm);
}

TEST(ReproducibleAllreduce, GivesTheSameBitsForEveryAlgorithmAndLayout) {
  check_reproducible<float>(Reduction::sum);
  check_reproducible<float>(Reduction::mean);
  check_reproducible<double>(Reduction::sum);
  check_reproducible<BFloat16>(Reduction::mean);
  check_reproducible<Half>(Reduction::sum);
}

TEST(ReproducibleAllreduce, WorksInBlocks) {
  run_as_threads(3, [](Transport& transport) {
    const size_t count = 2'100'001;  // two blocks and some of 8 MiB
    std::vector<double> buffer(count, transport.rank() + 1);
    allreduce(transport, std::span(buffer), Reduction::sum, {}, {.reproducible = true});
    EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 6.0), static_cast<std::ptrdiff_t>(count));
  });
}

TEST(Allreduce, RingDependsOnItsOrderAndNotOnItsSegments) {
  const Hosts hosts(5, "one");
  const auto by_rank =
      rough_sum<float>(hosts, Reduction::sum, {.algorithm = Algorithm::ring, .segment_bytes = 64});
  EXPECT_EQ(by_rank, rough_sum<float>(hosts, Reduction::sum, {.algorithm = Algorithm::ring}));
  EXPECT_NE(by_rank,
            rough_sum<float>(hosts, Reduction::sum,
                             {.algorithm = Algorithm::ring, .ring_order = {0, 2, 4, 1, 3}}));
}

TEST(Allreduce, RefusesOptionsThatDoNotGoTogether) {
  const AllreduceOptions mistakes[] = {
      {.wire = DType::f64},
      {.wire = DType::f16, .reproducible = true},
      {.algorithm = Algorithm::tree, .wire = DType::f16},
      {.algorithm = Algorithm::hierarchical, .outer = Algorithm::tree, .wire = DType::bf16},
      {.algorithm = Algorithm::hierarchical, .inner = Algorithm::hierarchical},
      {.algorithm = Algorithm::ring, .ring_order = {0, 0}},
      {.algorithm = Algorithm::torus, .torus_columns = 3},
  };
  for (const AllreduceOptions& options : mistakes)
    run_as_threads(2, [&](Transport& transport) {
      std::vector<float> buffer(4);
      try {
        allreduce(transport, std::span(buffer), Reduction::sum, {}, options);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::usage) << error.message;
      }
    });
}

TEST(Allreduce, LeavesNothingAutomatic) {
  on_layout({"a", "a", "b", "b"}, false, [](Transport& transport) {
    for (const size_t bytes : {8, 1 << 12, 1 << 20, 1 << 28}) {
      const AllreduceOptions options = resolved(transport, bytes, DType::f32, {});
      EXPECT_NE(options.algorithm, Algorithm::automatic);
      EXPECT_NE(options.inner, Algorithm::automatic);
      EXPECT_NE(options.outer, Algorithm::automatic);
      EXPECT_GT(options.segment_bytes, 0u);
      const auto narrow = resolved(transport, bytes, DType::f32, {.wire = DType::f16});
      EXPECT_TRUE(narrow.algorithm == Algorithm::ring || narrow.outer == Algorithm::ring);
    }
  });
}

}  // namespace
}  // namespace renkei::comm
