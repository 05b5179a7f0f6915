#include "sim/network.h"

#include <gtest/gtest.h>

#include "tests/sim/machines.h"

namespace renkei::sim {
namespace {

double narrowest(const Network& network, const Route& route) {
  double least = 1e30;
  for (const Link link : route.links())
    least = std::min(least, network.capacities()[static_cast<size_t>(link)]);
  return least;
}

TEST(Network, RoutesAgreeWithTheDescriptionOnEveryLevel) {
  const auto machine = test::small_machine();
  const auto devices = places(machine, 64);
  const Network network(machine, devices);
  const struct { int from, to, links; } cases[] = {{0, 3, 2}, {0, 4, 4}, {0, 63, 6}};
  for (const auto& [from, to, links] : cases) {
    const Route route = network.route(from, to);
    const comm::LinkCost expected = cluster::link_between(
        machine, devices[static_cast<size_t>(from)], devices[static_cast<size_t>(to)]);
    EXPECT_EQ(route.count, links);
    EXPECT_DOUBLE_EQ(route.latency_seconds, expected.latency_seconds);
    EXPECT_DOUBLE_EQ(narrowest(network, route), expected.bytes_per_second);
  }
}

TEST(Network, DirectionsAreApart) {
  const auto machine = test::small_machine();
  const Network network(machine, places(machine, 64));
  const Route there = network.route(0, 63), back = network.route(63, 0);
  for (const Link out : there.links())
    for (const Link in : back.links()) EXPECT_NE(out, in);
}

TEST(Network, DevicesOfANodeAreDealtOutToItsAdapters) {
  auto machine = test::small_machine();
  machine.interconnect.adapters = 2;
  const Network network(machine, places(machine, 8));
  EXPECT_EQ(network.route(0, 4).places[2], network.route(1, 4).places[2]);
  EXPECT_NE(network.route(1, 4).places[2], network.route(2, 4).places[2]);
  EXPECT_DOUBLE_EQ(narrowest(network, network.route(0, 4)), 2.5e9);
}

}  // namespace
}  // namespace renkei::sim
