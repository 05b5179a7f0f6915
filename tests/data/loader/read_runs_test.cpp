#include "data/loader/read_runs.h"

#include <gmock/gmock.h>

namespace renkei::data {
namespace {

using testing::ElementsAre;

TEST(ReadRuns, NeighboursAreReadTogether) {
  const std::vector<Location> places{
      {0, 1000, 100}, {1, 0, 50}, {0, 0, 100}, {0, 130, 20}, {-1, 0, 5}};
  const auto runs = plan_reads(places, 30, 1 << 20);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].where, (Location{0, 0, 150}));
  EXPECT_THAT(runs[0].members, ElementsAre(2, 3));
  EXPECT_EQ(runs[1].where, (Location{0, 1000, 100}));
  EXPECT_EQ(runs[2].where, (Location{1, 0, 50}));
}

TEST(ReadRuns, ARunIsNotLongerThanAllowed) {
  const std::vector<Location> places{{0, 0, 60}, {0, 60, 60}, {0, 120, 500}};
  const auto runs = plan_reads(places, 0, 120);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].where.length, 120);
  EXPECT_EQ(runs[1].where.length, 500);
}

TEST(ReadRuns, TheSameSampleTwiceIsReadOnce) {
  const std::vector<Location> places{{0, 10, 60}, {0, 10, 60}};
  const auto runs = plan_reads(places, 0, 1000);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].where, (Location{0, 10, 60}));
}

}  // namespace
}  // namespace renkei::data
