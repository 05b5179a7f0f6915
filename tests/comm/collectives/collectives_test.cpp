#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/allreduce.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/barrier.h"
#include "comm/collectives/broadcast.h"
#include "comm/transport/thread_transport.h"
#include "tests/comm/collective_cases.h"
#include "tests/comm/sanitizer.h"

namespace renkei::comm {
namespace {

using testing::HasSubstr;

// With sends that are buffered, and with sends that wait for their receive: the latter would hang,
// and so time out, where a collective leans on buffering.
class Collectives : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void run(void (*check)(Transport&)) {
    const auto [ranks, rendezvous] = GetParam();
    run_as_threads(ranks, check, {.rendezvous = rendezvous});
  }
};

const auto number_of_ranks = [](const auto& info) {
  return fmt::format("{}Ranks", std::get<0>(info.param));
};
INSTANTIATE_TEST_SUITE_P(Buffered, Collectives,
                         testing::Combine(testing::Range(1, 9), testing::Values(false)),
                         number_of_ranks);
INSTANTIATE_TEST_SUITE_P(Rendezvous, Collectives,
                         testing::Combine(testing::Values(2, 3, 8), testing::Values(true)),
                         number_of_ranks);

TEST_P(Collectives, NoRankLeavesABarrierBeforeAllHaveEntered) {
  run(check_barrier);
}
TEST_P(Collectives, BroadcastCopiesTheRootsBuffer) {
  run(check_broadcast);
}
TEST_P(Collectives, AllGatherKeepsRankOrder) {
  run(check_all_gather);
}
TEST_P(Collectives, AllGatherVTakesDifferentCountsPerRank) {
  run(check_all_gather_v);
}
TEST_P(Collectives, ReduceScatterLeavesEachRankItsChunk) {
  run(check_reduce_scatter);
}
TEST_P(Collectives, AllToAllDealsOutTheParts) {
  run(check_all_to_all);
}
TEST_P(Collectives, AllreduceEqualsTheReference) {
  run(check_allreduce);
}
TEST_P(Collectives, AllreduceLeavesTheSameBitsOnEveryRank) {
  run(check_allreduce_gives_same_bits);
}
TEST_P(Collectives, RandomSequencesDoNotMixMessages) {
  run(check_random_sequence);
}
TEST_P(Collectives, OfGroupsUseMemoryThatOnlyTheyShare) {
  run(check_groups_share_memory);
}
TEST_P(Collectives, AMissingRankIsNamed) {
  run(check_missing_rank_is_named);
}

// The thread sanitizer's shadow of these 4 GB would take 21 GB, and the address sanitizer checks
// each of their words. Smaller messages show them the same code.
#if !RENKEI_THREAD_SANITIZER && !RENKEI_ADDRESS_SANITIZER
TEST(LargeBroadcast, MovesMoreThanTwoToThe31Bytes) {
  run_as_threads(2, check_broadcast_above_2_31_bytes);
}
#endif

TEST(Allreduce, SumsOfLargeIntegersAreExact) {
  // Neither fits the 53 bits of a double.
  constexpr int64_t kLarge = (int64_t{1} << 60) + 1;
  run_as_threads(5, [&](Transport& transport) {
    std::vector<int64_t> buffer{kLarge + transport.rank(), -kLarge - transport.rank()};
    allreduce(transport, std::span(buffer), Reduction::sum);
    EXPECT_EQ(buffer, (std::vector<int64_t>{5 * kLarge + 10, -5 * kLarge - 10}));
  });
}

// Runs `body` on two ranks, of which it may stop one, and returns what the caller sees.
Error error_of(const std::function<void(Transport&)>& body) {
  try {
    run_as_threads(2, body, {.hosts = {"n1", "n2"}});
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::bug, "nothing was thrown");
}

TEST(Collective, NamesItselfWhenTheCallerDoesNot) {
  struct Collective {
    const char* name;
    void (*run)(Transport&, const Call&);
  };
  const Collective collectives[] = {
      {"barrier", [](Transport& t, const Call& call) { barrier(t, call); }},
      {"broadcast",
       [](Transport& t, const Call& call) {
         float buffer[3] = {};
         broadcast(t, std::span<float>(buffer), 1, call);
       }},
      {"all_gather",
       [](Transport& t, const Call& call) {
         double all[2] = {};
         all_gather(t, std::span(all, 1), std::span<double>(all), call);
       }},
      {"allreduce",
       [](Transport& t, const Call& call) {
         float buffer[3] = {};
         allreduce(t, std::span<float>(buffer), Reduction::max, call);
       }},
  };
  for (const Collective& collective : collectives) {
    const Error error = error_of([&](Transport& transport) {
      if (transport.rank() == 0) collective.run(transport, {.step = 12, .timeout_seconds = 0.05});
    });
    EXPECT_EQ(error.code, ErrorCode::communication);
    EXPECT_EQ(error.message,
              fmt::format("rank 0 (host n1) waited 50 ms for rank 1 (host n2) in {}, step 12",
                          collective.name));
    EXPECT_EQ(error.rank, 1);
    EXPECT_EQ(error.host, "n2");
    EXPECT_EQ(error.step, 12);
  }
}

TEST(Collective, SaysWhichCountsDiffer) {
  const Error error = error_of([](Transport& transport) {
    std::vector<float> buffer(transport.rank() == 0 ? 4 : 6);
    allreduce(transport, std::span(buffer), Reduction::sum);
  });
  EXPECT_EQ(error.code, ErrorCode::communication);
  EXPECT_THAT(error.message, HasSubstr("allreduce (sum) of 4 f32"));
  EXPECT_THAT(error.message, HasSubstr("allreduce (sum) of 6 f32"));
}

TEST(Collective, RefusesArgumentsThatDoNotFit) {
  const std::function<void(Transport&)> mistakes[] = {
      [](Transport& t) {
        float value = 0;
        broadcast(t, std::span(&value, 1), 2);
      },
      [](Transport& t) {
        std::vector<float> mine(2), all(5);
        all_gather(t, std::span(mine), std::span(all));
      },
      [](Transport& t) {
        std::vector<float> mine(2), all(4);
        all_gather_v(t, std::span(mine), std::span(all), std::vector<size_t>{1, 3});
      },
      [](Transport& t) {
        std::vector<float> mine(2), all(2);
        all_gather_v(t, std::span(mine), std::span(all), std::vector<size_t>{2});
      },
  };
  for (const auto& mistake : mistakes) {
    // The rank that does fit (in the third case) waits for the other one until that has failed.
    EXPECT_EQ(error_of(mistake).code, ErrorCode::bug);
  }
}

}  // namespace
}  // namespace renkei::comm
