#include "comm/transport/counting_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "comm/allreduce.h"
#include "comm/buffer/chunk_range.h"
#include "comm/choice/cost_measurement.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/all_to_all.h"
#include "comm/collectives/barrier.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"
#include "comm/collectives/reduce_scatter.h"
#include "comm/communicator.h"
#include "tests/comm/patterns.h"
#include "tests/comm/sanitizer.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr bool kSanitized = RENKEI_ADDRESS_SANITIZER || RENKEI_THREAD_SANITIZER;
constexpr int kManyRanks = kSanitized ? 64 : 1024;

Buffer without_data(size_t count, DType dtype = DType::f32) {
  return {nullptr, count, dtype};
}

std::vector<std::string> hosts_with(int ranks, int per_host) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(std::to_string(rank / per_host));
  return hosts;
}

// An allreduce of `bytes` in segments, and what the headers say that a rank sends in it.
struct Case {
  int ranks;
  int64_t bytes, segment;
  int per_host = 1;

  // Messages for a piece of the buffer.
  int64_t messages(int64_t piece) const { return (piece + segment - 1) / segment; }

  std::vector<Traffic> run(const AllreduceOptions& options) const {
    const CostModel model;
    AllreduceOptions complete = options;
    complete.model = &model;
    complete.segment_bytes = static_cast<size_t>(segment);
    complete.check = Check::nothing;
    return run_counting(ranks,
                        [&](Transport& transport) {
                          allreduce(transport, without_data(static_cast<size_t>(bytes) / 4),
                                    Reduction::mean, {}, complete);
                        },
                        {.hosts = hosts_with(ranks, per_host)});
  }
};

void expect_all(const std::vector<Traffic>& traffic, int64_t messages, int64_t bytes) {
  for (const Traffic& rank : traffic)
    ASSERT_EQ(rank, (Traffic{messages, bytes, messages, bytes}))
        << messages << " messages and " << bytes << " bytes were expected of each rank";
}

// 1 GiB among many ranks with a message for each chunk, and fewer ranks with segments.
const std::vector<Case> kCases = {{kManyRanks, kGiB, kGiB}, {64, kGiB, 256 << 10}};

TEST(RingAllreduce, SendsAsManyBytesAndMessagesAsItsHeaderSays) {
  for (const Case& c : kCases) {
    const int64_t steps = 2 * (c.ranks - 1), chunk = c.bytes / c.ranks;
    expect_all(c.run({.algorithm = Algorithm::ring}), steps * c.messages(chunk), steps * chunk);
  }
}

TEST(RingAllreduce, SendsAllChunksTwiceButTwoWhereTheyDiffer) {
  const Case c{7, 4 * 1003, 64};
  const auto traffic = c.run({.algorithm = Algorithm::ring});
  const auto chunk = [&](int place) {
    return 4 * static_cast<int64_t>(chunk_range(1003, 7, wrap(place, 7)).size());
  };
  int64_t all_messages = 0;
  for (int p = 0; p < 7; ++p) all_messages += 2 * c.messages(chunk(p));
  for (int p = 0; p < 7; ++p) {
    const Traffic& rank = traffic[static_cast<size_t>(p)];
    EXPECT_EQ(rank.bytes_sent, 2 * c.bytes - chunk(p) - chunk(p + 1));
    EXPECT_EQ(rank.bytes_received, 2 * c.bytes - chunk(p) - chunk(p - 1));
    EXPECT_EQ(rank.messages_sent, all_messages - c.messages(chunk(p)) - c.messages(chunk(p + 1)));
  }
}

TEST(HalvingDoublingAllreduce, SendsAsManyBytesAndMessagesAsItsHeaderSays) {
  for (const Case& c : kCases) {
    const int steps = std::countr_zero(static_cast<unsigned>(c.ranks));
    int64_t messages = steps;  // of the doubling, which has nothing to reduce and no segments
    for (int k = 1; k <= steps; ++k) messages += c.messages(c.bytes >> k);
    expect_all(c.run({.algorithm = Algorithm::halving_doubling}), messages,
               2 * (c.ranks - 1) * (c.bytes / c.ranks));
  }
}

TEST(HalvingDoublingAllreduce, SendsTheWholeBufferOnceMoreForFoldedRanks) {
  const Case c{1000, kGiB, kGiB};
  const int64_t p = 512, extra = c.ranks - p, moved = 2 * (p - 1) * (c.bytes / p), steps = 2 * 9;
  const auto traffic = c.run({.algorithm = Algorithm::halving_doubling});
  for (int r = 0; r < c.ranks; ++r) {
    const bool in_pair = r < 2 * extra, folded = in_pair && r % 2 == 0;
    const int64_t messages = folded ? 1 : steps + (in_pair ? 1 : 0);
    const int64_t bytes = folded ? c.bytes : moved + (in_pair ? c.bytes : 0);
    ASSERT_EQ(traffic[static_cast<size_t>(r)], (Traffic{messages, bytes, messages, bytes})) << r;
  }
}

TEST(TorusAllreduce, SendsAsManyBytesAndMessagesAsItsHeaderSays) {
  for (const Case& c : kCases) {
    const int64_t columns = std::lround(std::sqrt(c.ranks)), rows = c.ranks / columns;
    ASSERT_EQ(columns * rows, c.ranks);
    expect_all(c.run({.algorithm = Algorithm::torus}),
               2 * (columns - 1) * c.messages(c.bytes / columns) +
                   2 * (rows - 1) * c.messages(c.bytes / c.ranks),
               2 * (c.ranks - 1) * (c.bytes / c.ranks));
  }
}

TEST(HierarchicalAllreduce, SendsAsManyBytesAndMessagesAsItsHeaderSays) {
  for (Case c : kCases) {
    c.per_host = 8;
    const int64_t local = c.per_host, hosts = c.ranks / local, rail = c.bytes / local;
    expect_all(c.run({.algorithm = Algorithm::hierarchical, .outer = Algorithm::ring}),
               2 * (local - 1) * c.messages(rail) + 2 * (hosts - 1) * c.messages(rail / hosts),
               2 * (local - 1) * rail + 2 * (hosts - 1) * (rail / hosts));
  }
}

// The most memory of this process while `work` runs, beyond what it has before. Linux can forget
// the peak.
int64_t peak_growth(const std::function<void()>& work) {
  const auto read = [](const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == name) {
        int64_t kib = 0;
        status >> kib;
        return kib << 10;
      }
    return int64_t{0};
  };
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = read("VmRSS:");
  work();
  return read("VmHWM:") - before;
}

TEST(CountingTransport, RunsAThousandRanksInLittleMemory) {
  const Case c{kManyRanks, kGiB, kGiB, 8};
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::torus, Algorithm::hierarchical})
    EXPECT_LT(peak_growth([&] { c.run({.algorithm = algorithm}); }), kGiB / 2)
        << name_of(algorithm);
}

// Every collective, on memory of a buffer's size or on none.
void call_all(Transport& transport, bool data) {
  const auto n = static_cast<size_t>(transport.size());
  constexpr size_t kCount = 30'030;
  std::vector<float> memory(data ? 2 * kCount : 0);
  const Buffer buffer = data ? Buffer(std::span(memory).first(kCount)) : without_data(kCount);
  const Buffer other = data ? Buffer(std::span(memory).subspan(kCount)) : without_data(kCount);
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                    Algorithm::torus, Algorithm::hierarchical})
    allreduce(transport, buffer, Reduction::mean, {},
              {.algorithm = algorithm, .segment_bytes = 4096});
  for (const DType wire : {DType::f16, DType::bf16})
    allreduce(transport, buffer, Reduction::max, {}, {.wire = wire});
  allreduce(transport, buffer, Reduction::sum, {}, {.reproducible = true});
  reduce_scatter(transport, buffer, Reduction::sum);
  all_gather(transport, buffer.part(0, kCount / n), other);
  all_to_all(transport, buffer, other);
  broadcast(transport, buffer, 1);
  broadcast(transport, buffer.part(0, 10), 1);
  barrier(transport);
}

TEST(CountingTransport, SendsTheSameForABufferWithoutData) {
  for (const int ranks : {2, 5, 6})
    EXPECT_EQ(run_counting(ranks, [](Transport& t) { call_all(t, true); }),
              run_counting(ranks, [](Transport& t) { call_all(t, false); }));
}

TEST(CountingTransport, CarriesTheBytesOfMessagesThatHaveSome) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                    Algorithm::torus, Algorithm::hierarchical})
    run_counting(6,
                 [&](Transport& transport) {
                   auto buffer = pattern<float>(transport.rank(), 5003);
                   allreduce(transport, std::span(buffer), Reduction::sum, {},
                             {.algorithm = algorithm, .segment_bytes = 512});
                   EXPECT_EQ(buffer, reduced_pattern<float>(6, 5003, Reduction::sum));
                 },
                 {.hosts = hosts_with(6, 2)});
}

TEST(CountingTransport, RunsRanksInTheSameOrderEveryTime) {
  const auto order = [] {
    std::vector<int> ranks;
    run_counting(7, [&](Transport& transport) {
      for (int round = 0; round < 5; ++round) {
        ranks.push_back(transport.rank());
        barrier(transport);
      }
    });
    return ranks;
  };
  EXPECT_EQ(order(), order());
}

TEST(CountingTransport, MovesItsClockToTheFirstDeadlineWhenAllWait) {
  try {
    run_counting(3, [](Transport& transport) {
      if (transport.rank() == 2) return;
      const double patience = transport.rank() == 0 ? 7200 : 3600;
      try {
        barrier(transport, {.operation = "hello", .step = 4, .timeout_seconds = patience});
      } catch (const Timeout&) {
        EXPECT_EQ(transport.clock().seconds(), 3600);
        throw;
      }
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message,
              "rank 1 (host counting-host) waited 1 h 0 min for rank 2 (host counting-host) in "
              "hello, step 4");
  }
}

TEST(CountingTransport, AnExceptionInOneRankEndsAllAndIsTheOneRethrown) {
  int woken = 0;
  const auto body = [&](Transport& transport) {
    if (transport.rank() == 5) throw std::logic_error("out of ideas");
    try {
      barrier(transport);
    } catch (const Error& error) {
      EXPECT_THAT(error.message, HasSubstr("because rank 5 (host counting-host) failed"));
      ++woken;
      throw;
    }
  };
  EXPECT_THROW(run_counting(8, body), std::logic_error);
  EXPECT_EQ(woken, 7);
}

TEST(CountingTransport, NamesBothSizesWhenTheyDiffer) {
  const auto body = [](Transport& transport) {
    std::byte bytes[24] = {};
    if (transport.rank() == 0) transport.send(1, bytes, 0);
    if (transport.rank() == 0) return;
    Request request = transport.receive(0, std::span(bytes).first(8), 0);
    transport.wait(request, {});
  };
  try {
    run_counting(2, body);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message, HasSubstr("expected 8 bytes from rank 0"));
    EXPECT_THAT(error.message, HasSubstr("24 bytes arrived"));
  }
}

TEST(Communicator, MeasuresNothingWhenItIsGivenAModel) {
  const CostModel model{.inside = {1e-6, 1e10}, .between = {1e-3, 1e6}};
  const auto traffic = run_counting(
      6,
      [&](Transport& transport) {
        Communicator communicator(transport, {.shared_memory = false, .cost_model = model});
        EXPECT_EQ(communicator.cost_model().between.latency_seconds, 1e-3);
        EXPECT_EQ(communicator.cost_model().ranks, 6);
        EXPECT_EQ(communicator.cost_model().hosts, 3);
        const std::vector<int> some = {0, 1, 2};
        EXPECT_TRUE(communicator.options_among(some).cost_model);
      },
      {.hosts = hosts_with(6, 2)});
  EXPECT_EQ(traffic, std::vector<Traffic>(6));
}

// The ranks that wait for a neighbour that waits itself find out who is behind.
TEST(Communicator, NamesTheRankThatIsMissingAfterAWaitForMessages) {
  const CostModel model;
  int blamed = 0;
  const auto body = [&](Transport& transport) {
    Communicator communicator(transport, {.shared_memory = false, .cost_model = model});
    if (transport.rank() == 2) return;
    try {
      communicator.barrier({.step = 3});
    } catch (const Error& error) {
      if (error.rank == 2) ++blamed;
      if (transport.rank() == 0) throw;
    }
  };
  try {
    run_counting(5, body, {.hosts = hosts_with(5, 1)});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message,
              "rank 2 (host 2) has not come to barrier (operation #0, step 3): it does not answer");
  }
  EXPECT_EQ(blamed, 4);
}

}  // namespace
}  // namespace renkei::comm
