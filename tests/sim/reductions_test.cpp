#include "sim/reductions.h"

#include <gtest/gtest.h>

#include "sim/virtual_ranks.h"
#include "tests/base/thrown_error.h"
#include "tests/sim/machines.h"

namespace renkei::sim {
namespace {

double seconds(int ranks, double bytes, ReductionOptions options) {
  const auto machine = test::small_machine();
  return Reductions(machine, Network(machine, places(machine, ranks)), std::move(options))
      .seconds(bytes);
}

constexpr double kBytes = 64e6;

// Ranks of one node, where all links are alike: 2 (n-1) (latency + chunk / bandwidth).
TEST(Reductions, ARingInsideANodeTakesWhatTheFormulaSays) {
  const double expected = 6 * (2e-6 + kBytes / 4 / 10e9);
  for (const Detail detail : {Detail::rounds, Detail::flows})
    EXPECT_NEAR(
        seconds(4, kBytes, {.detail = detail, .algorithm = comm::Algorithm::ring}) / expected, 1,
        2e-3)  // latencies of segments overlap
        << name_of(detail);
}

// In lock step each round takes as long as the slowest link; with flows, a message goes on as soon
// as it has come, so that latencies add up as they are on the way.
TEST(Reductions, RoundsTakeTheSlowestLinkAndFlowsTheWay) {
  const int ranks = 64;
  const double chunk = kBytes / ranks;
  const double lockstep = 2 * (ranks - 1) * (6e-6 + chunk / 5e9);
  EXPECT_NEAR(
      seconds(ranks, kBytes, {.detail = Detail::rounds, .algorithm = comm::Algorithm::ring}) /
          lockstep,
      1, 1e-3);
  const double flows =
      seconds(ranks, kBytes, {.detail = Detail::flows, .algorithm = comm::Algorithm::ring});
  EXPECT_LT(flows, lockstep);
  EXPECT_GT(flows, 2 * kBytes * (ranks - 1) / ranks / 5e9);  // the narrowest link is never idle
}

TEST(Reductions, ARingThatCrossesNodesAtEachStepSharesTheirLinks) {
  const int ranks = 16;
  std::vector<int> order;
  for (int device = 0; device < 4; ++device)
    for (int node = 0; node < 4; ++node) order.push_back(node * 4 + device);
  for (const Detail detail : {Detail::rounds, Detail::flows}) {
    ReductionOptions good{.detail = detail, .algorithm = comm::Algorithm::ring}, bad = good;
    bad.ring_order = order;
    // Four flows on each adapter; the rounds' time is known.
    const double stride = seconds(ranks, kBytes, bad);
    EXPECT_NEAR(stride / (30 * (5e-6 + 4 * kBytes / ranks / 5e9)), 1, 0.01) << name_of(detail);
    EXPECT_GT(stride, 3 * seconds(ranks, kBytes, good)) << name_of(detail);
  }
}

TEST(Reductions, AllAlgorithmsRunOnAnyNumberOfRanks) {
  using comm::Algorithm;
  for (const int ranks : {2, 3, 8, 12, 31})
    for (const Algorithm algorithm :
         {Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
          Algorithm::torus, Algorithm::hierarchical})
      for (const Detail detail : {Detail::rounds, Detail::flows}) {
        const double time = seconds(ranks, 1e6, {.detail = detail, .algorithm = algorithm});
        EXPECT_GT(time, 1e6 / 10e9) << ranks << " " << name_of(algorithm);
        EXPECT_LT(time, 0.1) << ranks << " " << name_of(algorithm);
      }
}

TEST(Reductions, HalfTheBytesTakeHalfTheTimeWhereLatencyDoesNotCount) {
  const double whole = seconds(16, 1e9, {.detail = Detail::flows});
  const double half = seconds(16, 0.5e9, {.detail = Detail::flows});
  EXPECT_NEAR(half / whole, 0.5, 0.01);
}

std::vector<schedule::RankedStep::Behind> at_once(int ranks, double begin, double end) {
  std::vector<schedule::RankedStep::Behind> members;
  for (int rank = 0; rank < ranks; ++rank) members.push_back({rank, begin, end, 0});
  return members;
}

TEST(Reductions, BucketsHideBehindTheComputationButForTheLast) {
  const auto machine = test::small_machine();
  for (const Detail detail : {Detail::closed, Detail::rounds, Detail::flows}) {
    Reductions reductions(machine, Network(machine, places(machine, 8)),
                          {.detail = detail, .bucket_bytes = 10e6});
    const double last = reductions.seconds(10e6);
    // Ten buckets become ready within 10 s, each of which is reduced in much less than one.
    EXPECT_NEAR(reductions.ends(100e6, at_once(8, 0, 10)).front(), 10 + last, 1e-9);
    // None of them hides when everything is ready at once.
    EXPECT_NEAR(reductions.ends(100e6, at_once(8, 10, 10)).front() / (10 + 10 * last), 1, 1e-3);
  }
}

TEST(Reductions, AStragglerHoldsUpTheRing) {
  const auto machine = test::small_machine();
  Reductions reductions(machine, Network(machine, places(machine, 8)),
                        {.detail = Detail::flows, .algorithm = comm::Algorithm::ring});
  auto members = at_once(8, 0, 1);
  members[3].end = members[3].begin = 2;
  for (const double end : reductions.ends(1e6, members)) EXPECT_GT(end, 2);
}

TEST(VirtualRanks, RanksThatWaitForEachOtherEndWithAnError) {
  const auto machine = test::small_machine();
  const Network network(machine, places(machine, 2));
  const auto body = [](VirtualRank& rank) {
    comm::Request request = rank.receive(1 - rank.rank(), {static_cast<std::byte*>(nullptr), 8}, 1);
    rank.wait(request, {.operation = "test"});
  };
  EXPECT_THROW(seconds_in_rounds(network, body), comm::Timeout);
  EXPECT_THROW(ends_with_flows(network, body), comm::Timeout);
}

TEST(VirtualRanks, MessagesBetweenTwoRanksFollowEachOther) {
  const auto machine = test::small_machine();
  const Network network(machine, places(machine, 2));
  const std::vector<double> ends = ends_with_flows(network, [](VirtualRank& rank) {
    std::vector<comm::Request> requests;
    for (int i = 0; i < 3; ++i)
      requests.push_back(rank.rank() == 0
                             ? rank.send(1, {static_cast<const std::byte*>(nullptr), 10'000'000}, 1)
                             : rank.receive(0, {static_cast<std::byte*>(nullptr), 10'000'000}, 1));
    rank.wait(requests[0], {});
    if (rank.rank() == 1) {
      EXPECT_NEAR(rank.clock().seconds(), 2e-6 + 1e-3, 1e-12);
    }
    for (comm::Request& request : requests) rank.wait(request, {});
  });
  EXPECT_NEAR(ends[1], 2e-6 + 3e-3, 1e-12);
}

// To the last bit, on every compiler: what the time of an event is must not depend on how sums are
// evaluated.
TEST(VirtualRanks, GiveTheSameBitsAsEver) {
  EXPECT_EQ(seconds(64, 51.1e6, {.detail = Detail::rounds}), 0.020876688000000046);
  EXPECT_EQ(seconds(64, 51.1e6, {.detail = Detail::flows}), 0.020126625599999833);
  std::vector<int> random_order(64);
  for (int i = 0; i < 64; ++i) random_order[static_cast<size_t>(i)] = i * 37 % 64;
  const double contended = seconds(
      64, 51.1e6,
      {.detail = Detail::flows, .algorithm = comm::Algorithm::ring, .ring_order = random_order});
  EXPECT_EQ(contended, 0.1609710035999987);
}

}  // namespace
}  // namespace renkei::sim
