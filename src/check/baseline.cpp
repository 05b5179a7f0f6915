#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "check/acceptance.h"
#include "check/outliers.h"

namespace renkei::check {
namespace {

constexpr double kCallSeconds = 5e-6;

double median_of(const std::vector<RankMeasures>& ranks,
                 const std::function<double(const RankMeasures&)>& value) {
  std::vector<double> values;
  for (const RankMeasures& m : ranks)
    if (value(m) > 0) values.push_back(value(m));
  return median(values);
}

comm::LinkCost median_link(const std::vector<Link>& links, comm::LinkCost otherwise) {
  if (links.empty()) return otherwise;
  std::vector<double> latencies, rates;
  for (const Link& link : links) {
    latencies.push_back(link.latency_seconds);
    rates.push_back(link.bytes_per_second);
  }
  return {median(latencies), median(rates)};
}

}  // namespace

cluster::Description describe(const Measurements& measured) {
  if (measured.level < 2)
    throw Error(ErrorCode::usage, "level 1 measures nothing that could be saved or compared",
                "use --level 2 with --save and --baseline");
  std::map<std::string, int> ranks_of;
  for (const RankMeasures& m : measured.ranks) ++ranks_of[m.host];
  std::map<int, int> hosts_with;  // ranks → hosts
  for (const auto& [host, count] : ranks_of) ++hosts_with[count];
  const int most = hosts_with.rbegin()->first;
  const double memory = median_of(measured.ranks, [](auto& m) { return m.memory_bytes; });
  const double memory_rate =
      median_of(measured.ranks, [](auto& m) { return m.memory_bytes_per_second; });

  cluster::Description machine{
      .name = "measured",
      .summary = fmt::format("measured by renkei check: {} ranks on {} hosts",
                             measured.ranks.size(), ranks_of.size())};
  machine.kinds = {{.name = "cpu",
                    .flops_per_second = std::max(
                        1.0, median_of(measured.ranks, [](auto& m) { return m.single_flops; })),
                    .efficiency = 1,
                    .memory_bytes = static_cast<int64_t>(memory / most),
                    .memory_bytes_per_second = std::max(1.0, memory_rate / most),
                    .call_seconds = kCallSeconds}};
  const comm::LinkCost inside = median_link(measured.inside, {2e-6, memory_rate / 4});
  for (const auto& [ranks, hosts] : hosts_with)
    machine.nodes.push_back({.count = hosts,
                             .devices = ranks,
                             .kind = 0,
                             .memory_bytes = static_cast<int64_t>(memory),
                             .link = inside});
  machine.interconnect.link = median_link(measured.between, inside);
  machine.storage = {
      .name = "check.directory",
      .read_bytes_per_second = median_of(measured.ranks, [](auto& m) { return m.disk_read; })};
  return machine;
}

std::vector<Finding> compare(const cluster::Description& now, const cluster::Description& before,
                             double tolerance) {
  std::vector<Finding> findings;
  const auto rate = [&](const std::string& name, double is, double was, double scale,
                        const std::string& unit) {
    if (was <= 0 || is <= 0) return;
    Finding finding{.name = "baseline: " + name,
                    .level = 2,
                    .value = is / scale,
                    .unit = unit,
                    .expected = fmt::format("about {:.4g}", was / scale)};
    if (is < (1 - tolerance) * was) {
      finding.status = Status::fail;
      finding.reason = fmt::format("{:.0f} % of what it was", 100 * is / was);
    }
    findings.push_back(finding);
  };
  const cluster::DeviceKind &kind = now.kinds.front(), &old = before.kinds.front();
  rate("SGEMM", kind.flops_per_second * kind.efficiency, old.flops_per_second * old.efficiency, 1e9,
       "GFLOP/s");
  rate("memory", kind.memory_bytes_per_second, old.memory_bytes_per_second, 1e9, "GB/s");
  rate("links between hosts", now.interconnect.link.bytes_per_second,
       before.interconnect.link.bytes_per_second, 1e6, "MB/s");
  rate("disk read", now.storage.read_bytes_per_second, before.storage.read_bytes_per_second, 1e6,
       "MB/s");
  if (now.device_count() != before.device_count())
    findings.push_back({.name = "baseline: devices",
                        .level = 2,
                        .status = Status::warn,
                        .value = now.device_count(),
                        .expected = std::to_string(before.device_count()),
                        .reason = "another number of ranks was measured then"});
  return findings;
}

}  // namespace renkei::check
