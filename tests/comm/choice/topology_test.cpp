#include "comm/choice/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

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
  const HostGroups groups = {{"b2", "b1"}, {"a1", "a2"}};
  const auto order = ring_order(hosts, groups);
  EXPECT_THAT(order, ElementsAre(0, 4, 2, 1, 3, 5));
  EXPECT_EQ(host_crossings(order, hosts), 5);
  EXPECT_EQ(group_crossings(order, hosts, groups), 3);
  EXPECT_EQ(group_crossings(ring_order(hosts), hosts, groups), 5);
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

// The message and the hint of a usage error.
std::string told_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::usage);
    return error.message + " / " + error.hint;
  }
  return "nothing was thrown";
}

TEST(HostGroups, AreWrittenAndReadBack) {
  const HostGroups groups = parse_host_groups("a1, a2;b1 ;c");
  EXPECT_THAT(groups, ElementsAre(ElementsAre("a1", "a2"), ElementsAre("b1"), ElementsAre("c")));
  EXPECT_EQ(format_host_groups(groups), "a1,a2;b1;c");
}

TEST(HostGroups, SayWhatIsWrongWithThem) {
  const auto parse = [](const char* text) { return told_by([&] { parse_host_groups(text); }); };
  EXPECT_THAT(parse("a,b;b"), HasSubstr("the groups \"a,b;b\" name host b twice"));
  EXPECT_THAT(parse("a,;b"), HasSubstr("have a host without a name"));
  EXPECT_THAT(parse("a;"), HasSubstr("have a host without a name"));
}

TEST(HostGroups, NameOnlyHostsThatHaveRanks) {
  const Hosts hosts = {"n1", "n2", "n1"};
  check_host_groups({{"n2"}}, hosts);
  EXPECT_EQ(told_by([&] {
              check_host_groups({{"n1"}, {"m2"}}, hosts);
            }),
            "comm.groups names host m2, on which no rank runs / the hosts of this job are n1, n2");
}

TEST(RanksByHost, VisitsHostsInTheOrderOfTheRing) {
  EXPECT_THAT(ranks_by_host(std::vector<int>{3, 0, 1, 2}, Hosts{"a", "b", "a", "b"}),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2)));
}

}  // namespace
}  // namespace renkei::comm
