#include "bench/collectives.h"

#include <gtest/gtest.h>

#include "comm/transport/thread_transport.h"

namespace renkei::bench {
namespace {

using comm::Collective;
using comm::DType;

TEST(Collectives, AreMeasuredOnEachKindOfBufferAndSize) {
  for (const Collective collective : {Collective::allreduce, Collective::all_to_all})
    comm::run_as_threads(2, [&](comm::Transport& t) {
      comm::Communicator communicator(t, {});
      const CollectivesOptions options{
          .collective = collective, .dtype = DType::f16, .sizes_bytes = {64, 4096}, .rounds = 1};
      size_t heard = 0;
      const auto rows =
          measure_collectives(communicator, options, [&](const CollectivesRow&) { ++heard; });
      // Only an allreduce has one result for all.
      std::vector<std::string> kinds{"once", "shared", "private"};
      if (collective != Collective::allreduce) kinds.erase(kinds.begin());
      ASSERT_EQ(rows.size(), 2 * kinds.size());
      EXPECT_EQ(heard, rows.size());
      for (size_t r = 0; r < rows.size(); ++r) {
        const bool first = r < kinds.size();
        EXPECT_EQ(rows[r].buffers, kinds[r % kinds.size()]);
        EXPECT_EQ(rows[r].size_bytes, first ? 64 : 4096);
        EXPECT_EQ(rows[r].count, first ? 32 : 2048);
        EXPECT_EQ(rows[r].wrong, 0);
        EXPECT_GT(rows[r].time_us, 0);
        EXPECT_GT(rows[r].bound_us, 0);
        EXPECT_EQ(rows[r].in_place, collective == Collective::allreduce);
        EXPECT_EQ(rows[r].from_other_us.has_value(), rows[r].in_place);
      }
    });
}

TEST(Collectives, HaveAtLeastAnElementForEachRankThatGetsAPart) {
  const CollectivesOptions gather{.collective = Collective::all_gather, .dtype = DType::f64};
  EXPECT_EQ(count_for(gather, 8, 3), 3u);
  EXPECT_EQ(count_for(gather, 80, 3), 9u);
  const CollectivesOptions reduce{.dtype = DType::f64};
  EXPECT_EQ(count_for(reduce, 4, 3), 1u);
  EXPECT_EQ(count_for(reduce, 80, 3), 10u);
}

}  // namespace
}  // namespace renkei::bench
