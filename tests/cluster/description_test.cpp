#include "cluster/description.h"

#include <gtest/gtest.h>

#include "cluster/local_machine.h"
#include "tests/base/thrown_error.h"

namespace renkei::cluster {
namespace {

using test::thrown_error;

const std::string kTwoKinds = R"(version = 1
name = "mixed"
[device.slow]
flops_per_second = 1e12
memory = "8GiB"
memory_bytes_per_second = 100e9
[device.fast]
flops_per_second = 4e12
efficiency = 0.5
memory = "16GiB"
memory_bytes_per_second = 500e9
[[nodes]]
count = 1
devices = 2
device = "slow"
memory = "64GiB"
link = { latency_seconds = 1e-6, bytes_per_second = 5e9 }
[[nodes]]
count = 3
devices = 1
device = "fast"
memory = "64GiB"
[interconnect]
latency_seconds = 2e-6
bytes_per_second = 10e9
group_nodes = 2
uplink = { latency_seconds = 1e-6, bytes_per_second = 4e9 }
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

void expect_refused(const std::string& toml, const std::string& part) {
  const Error error = thrown_error([&] { parse_description(toml, "m.toml"); });
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(Description, PutsFastDevicesFirstAndKnowsNodesAndGroups) {
  const Description mixed = parse_description(kTwoKinds, "m.toml");
  EXPECT_EQ(mixed.device_count(), 5);
  const auto devices = places(mixed, 5);
  std::vector<std::string> kinds;
  std::vector<int> nodes, groups;
  for (const Place& place : devices) {
    kinds.push_back(mixed.kinds[static_cast<size_t>(place.kind)].name);
    nodes.push_back(place.node);
    groups.push_back(place.group);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"fast", "fast", "fast", "slow", "slow"}));
  EXPECT_EQ(nodes, (std::vector<int>{1, 2, 3, 0, 0}));
  EXPECT_EQ(groups, (std::vector<int>{0, 1, 1, 0, 0}));
}

TEST(Description, LinksAreThoseOfTheNodeTheSwitchOrTheUplink) {
  const Description mixed = parse_description(kTwoKinds, "m.toml");
  const auto devices = places(mixed, 5);
  EXPECT_EQ(link_between(mixed, devices[3], devices[4]).bytes_per_second, 5e9);
  EXPECT_EQ(link_between(mixed, devices[1], devices[2]).bytes_per_second, 10e9);
  const comm::LinkCost up = link_between(mixed, devices[0], devices[1]);
  EXPECT_EQ(up.bytes_per_second, 4e9);
  EXPECT_DOUBLE_EQ(up.latency_seconds, 3e-6);
}

TEST(Description, CollectivesSeeHostsAndWhetherTheyAreEven) {
  const Description mn1 = load_description("mn1");
  const auto devices = places(mn1, 24);
  const auto model = cost_model(mn1, devices);
  EXPECT_EQ(model.ranks, 24);
  EXPECT_EQ(model.hosts, 3);
  EXPECT_TRUE(model.even);
  EXPECT_FALSE(cost_model(mn1, std::span(devices).first(12)).even);
}

TEST(Description, ShippedMachinesAreThoseOfThePublications) {
  EXPECT_EQ(load_description("flow-type2").device_count(), 221 * 4);
  EXPECT_EQ(load_description("mn1").device_count(), 1024);
  EXPECT_EQ(load_description("tsubame3").device_count(), 540 * 4);
  EXPECT_EQ(load_description("flow-type2").kinds[0].memory_bytes, int64_t{32} << 30);
  EXPECT_EQ(load_description("mn1").interconnect.group_nodes, 16);
}

TEST(Description, RefusesWhatIsWrongWithTheLine) {
  expect_refused(replaced(kTwoKinds, "efficiency", "eficiency"),
                 "m.toml line 9: unknown key 'eficiency' (did you mean 'efficiency'?)");
  expect_refused(replaced(kTwoKinds, "count = 3", "count = 0"),
                 "line 19: 'count' must be a number");
  expect_refused(replaced(kTwoKinds, "device = \"fast\"", "device = \"fasd\""),
                 "there is no [device.fasd]");
  expect_refused(replaced(kTwoKinds, "version = 1", "version = 2"), "version 2");
  expect_refused(replaced(kTwoKinds, "\"8GiB\"", "\"8 apples\""), "line 5");
  expect_refused(replaced(kTwoKinds, "name = \"mixed\"", "name = mixed"), "line 2");
  expect_refused(replaced(kTwoKinds, "uplink = {", "uplinks = {"), "'uplink' is missing");
}

TEST(Description, RefusesAnUnknownMachineWithAllNames) {
  const Error error = thrown_error([] { load_description("mn2"); });
  EXPECT_NE(error.hint.find("local, flow-type2, mn1, tsubame3"), std::string::npos) << error.hint;
  EXPECT_EQ(thrown_error([] { places(load_description("mn1"), 1025); }).code, ErrorCode::usage);
}

TEST(LocalMachine, IsMeasuredAndDividedAmongTheDevices) {
  const MachineSpeed speed = measure_machine();
  EXPECT_GE(speed.cores, 1);
  EXPECT_GT(speed.core_flops_per_second, 1e6);
  EXPECT_GT(speed.memory_bytes_per_second, 1e6);
  const Description four = local_machine(speed, 4);
  EXPECT_EQ(four.device_count(), 4);
  EXPECT_DOUBLE_EQ(four.kinds[0].flops_per_second, speed.core_flops_per_second * speed.cores / 4);
  EXPECT_EQ(four.kinds[0].memory_bytes, speed.memory_bytes / 4);
}

}  // namespace
}  // namespace renkei::cluster
