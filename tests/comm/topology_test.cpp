#include "comm/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace renkei::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Hosts = std::vector<std::string>;

TEST(RingOrder, PutsTheRanksOfAHostSideBySide) {
  const Hosts hosts = {"a", "b", "c", "a", "b", "c"};
  const auto order = ring_order(hosts);
  EXPECT_THAT(order, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(host_crossings(order, hosts), 3);
  EXPECT_EQ(host_crossings(std::vector<int>{0, 1, 2, 3, 4, 5}, hosts), 6);
}

TEST(RingOrder, PutsTheHostsOfAGroupSideBySide) {
  const Hosts hosts = {"a1", "b1", "a2", "b2", "a1", "lone"};
  const auto order =
      ring_order(hosts, {{"a1", "A"}, {"a2", "A"}, {"b1", "B"}, {"b2", "B"}, {"other", "C"}});
  EXPECT_THAT(order, ElementsAre(0, 4, 2, 1, 3, 5));
  EXPECT_EQ(host_crossings(order, hosts), 5);
}

TEST(RingOrder, DoesNotTakeAHostForAGroupOfTheSameName) {
  EXPECT_THAT(ring_order(Hosts{"x", "b", "A", "b"}, {{"x", "A"}, {"b", "A"}}),
              ElementsAre(0, 1, 3, 2));
}

TEST(RingOrder, OfOneHostIsByRankAndCrossesNothing) {
  const Hosts hosts = {"a", "a", "a"};
  EXPECT_THAT(ring_order(hosts), ElementsAre(0, 1, 2));
  EXPECT_EQ(host_crossings(ring_order(hosts), hosts), 0);
  EXPECT_TRUE(ring_order({}).empty());
}

TEST(RingOrder, IsWrittenAndReadBack) {
  EXPECT_THAT(parse_ring_order("0,2, 1 ,3", 4), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(format_ring_order(parse_ring_order("3,1,0,2", 4)), "3,1,0,2");
}

TEST(RingOrder, SaysWhyItIsNoPermutation) {
  const auto message = [](const char* text) {
    try {
      parse_ring_order(text, 3);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::usage);
      return error.message;
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message("0,1,1"), "the ring 0,1,1 names rank 1 twice");
  EXPECT_EQ(message("0,1,3"), "the ring 0,1,3 names rank 3, but there are 3 ranks");
  EXPECT_EQ(message("0,2"), "the ring 0,2 leaves out rank 1");
  EXPECT_THAT(message("-1,0,1"), HasSubstr("names rank -1"));
  EXPECT_EQ(message("0,x,1"), "\"x\" in the ring \"0,x,1\" is no rank");
  EXPECT_EQ(message("0,1,"), "\"\" in the ring \"0,1,\" is no rank");
  EXPECT_THAT(message(""), HasSubstr("is no rank"));
}

TEST(RanksByHost, VisitsHostsInTheOrderOfTheRing) {
  EXPECT_THAT(ranks_by_host(std::vector<int>{3, 0, 1, 2}, Hosts{"a", "b", "a", "b"}),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2)));
}

}  // namespace
}  // namespace renkei::comm
