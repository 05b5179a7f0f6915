#include "check/links.h"

#include <set>

#include "comm/transport/thread_transport.h"

namespace renkei::check {
namespace {

TEST(Links, EveryPairMeetsOnceAndNobodyIsInTwoPairsOfARound) {
  for (const int n : {0, 1, 2, 3, 4, 5, 8, 13}) {
    std::set<std::pair<int, int>> all;
    const auto rounds = conflict_free_rounds(n);
    EXPECT_LE(rounds.size(), static_cast<size_t>(n)) << n;
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
        EXPECT_TRUE(all.emplace(a, b).second);
      }
    }
    EXPECT_EQ(all.size(), static_cast<size_t>(n * (n - 1) / 2)) << n;
  }
}

TEST(Links, AllPairsOfTheChosenRanksAreMeasured) {
  comm::run_as_threads(5, [](comm::Transport& transport) {
    const auto links = measure_links(transport, {0, 2, 3}, 0.001);
    if (transport.rank() != 0) return;
    std::set<std::pair<int, int>> pairs;
    for (const Link& link : links) {
      pairs.emplace(link.a, link.b);
      EXPECT_GT(link.bytes_per_second, 0);
      EXPECT_GT(link.latency_seconds, 0);
    }
    EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{{0, 2}, {0, 3}, {2, 3}}));
  });
}

}  // namespace
}  // namespace renkei::check
