#include "check/acceptance.h"

namespace renkei::check {
namespace {

// Four hosts with two ranks each, all alike but for a small spread.
Measurements four_hosts() {
  Measurements measured{.level = 3};
  for (int rank = 0; rank < 8; ++rank) {
    const double wobble = 1 + 0.01 * (rank * 5 % 8);
    measured.ranks.push_back({.rank = rank,
                              .host = fmt::format("n{}", rank / 2),
                              .first_of_host = rank % 2 == 0,
                              .identity = "the same",
                              .single_flops = 2e11 * wobble,
                              .double_flops = 1e11 * wobble,
                              .memory_bytes_per_second = 5e10 * wobble,
                              .memory_bytes = 64e9,
                              .disk_write = 1e9,
                              .disk_read = 2e9,
                              .rates = std::vector<double>(20, 9e10 * wobble)});
  }
  for (int a = 0; a < 8; a += 2)
    for (int b = a + 2; b < 8; b += 2) measured.between.push_back({a, b, 20e-6, 1e9 + a * 1e6});
  measured.inside = {{0, 1, 1e-6, 8e9}};
  return measured;
}

std::vector<Finding> bad(const std::vector<Finding>& findings) {
  std::vector<Finding> found;
  for (const Finding& finding : findings)
    if (finding.status != Status::pass) found.push_back(finding);
  return found;
}

TEST(Judgement, AHealthyClusterPasses) {
  EXPECT_TRUE(bad(judge(four_hosts(), 0.2)).empty());
}

TEST(Judgement, ASlowRankIsNamedAndNoOther) {
  Measurements measured = four_hosts();
  measured.ranks[5].double_flops *= 0.6;
  const auto found = bad(judge(measured, 0.2));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].name, "DGEMM");
  EXPECT_EQ(found[0].rank, 5);
  EXPECT_EQ(found[0].host, "n2");
}

TEST(Judgement, ASlowHostIsNamedAndNotItsPartners) {
  Measurements measured = four_hosts();
  for (Link& link : measured.between)
    if (link.a == 4 || link.b == 4) link.bytes_per_second /= 4;
  const auto found = bad(judge(measured, 0.2));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].name, "network of a host");
  EXPECT_EQ(found[0].host, "n2");
}

TEST(Judgement, ASlowLinkBetweenHealthyHostsIsNamed) {
  Measurements measured = four_hosts();
  measured.between[1].bytes_per_second /= 4;
  const auto found = bad(judge(measured, 0.2));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].name, "link n0 - n2");
}

TEST(Judgement, OtherVersionsAClockAndHeatAreFound) {
  Measurements measured = four_hosts();
  measured.ranks[2].identity = "older";
  measured.ranks[4].clock_offset_seconds = -3;
  measured.ranks[6].throttled = 7;
  for (size_t i = 12; i < 20; ++i) measured.ranks[1].rates[i] *= 0.6;
  std::vector<std::string> names;
  for (const Finding& finding : bad(judge(measured, 0.2)))
    names.push_back(fmt::format("{} {}", finding.name, finding.host));
  EXPECT_THAT(names, testing::UnorderedElementsAre("versions n1", "clock n2", "heat n3",
                                                   "variation over time n0", "heat n0"));
}

TEST(Description, WhatIsSavedIsReadAgainAndComparesWithItself) {
  const cluster::Description machine = describe(four_hosts());
  const auto again = cluster::parse_description(cluster::format_description(machine), "saved.toml");
  EXPECT_EQ(again.device_count(), 8);
  EXPECT_EQ(again.nodes.size(), 1);
  EXPECT_NEAR(again.interconnect.link.bytes_per_second, 1e9, 1e7);
  EXPECT_TRUE(bad(compare(machine, again, 0.2)).empty());
  Measurements slower = four_hosts();
  for (Link& link : slower.between) link.bytes_per_second /= 2;
  const auto found = bad(compare(describe(slower), again, 0.2));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].name, "baseline: links between hosts");
}

TEST(Page, HasABarForEveryRankAndACellForEveryLink) {
  const Measurements measured = four_hosts();
  const std::string page = page_of(measured, judge(measured, 0.2));
  size_t rectangles = 0;
  for (size_t at = page.find("<rect"); at != std::string::npos; at = page.find("<rect", at + 1))
    ++rectangles;
  EXPECT_EQ(rectangles, 8 + 2 * 6);
}

}  // namespace
}  // namespace renkei::check
