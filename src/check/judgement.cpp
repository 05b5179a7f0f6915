#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "check/acceptance.h"
#include "check/outliers.h"

namespace renkei::check {
namespace {

constexpr double kClockLimit = 0.5;  // seconds; make and object storage mind more than that
constexpr double kSteady = 0.85;     // the slowest tenth of the time against the median

// What is compared: a number of every rank or host.
struct Sample {
  int rank;
  std::string host;
  double value;
};

void compare_rates(std::vector<Finding>& findings, const std::string& name, const std::string& unit,
                   const std::vector<Sample>& samples, double tolerance, double scale,
                   const std::string& who) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.value);
  const std::vector<size_t> slow = slow_ones(values, tolerance);
  const double middle = median(values);
  for (size_t i = 0; i < samples.size(); ++i) {
    Finding finding{.name = name,
                    .level = 2,
                    .rank = samples[i].rank,
                    .host = samples[i].host,
                    .value = samples[i].value / scale,
                    .unit = unit,
                    .expected = fmt::format("about {:.4g}", middle / scale)};
    if (std::ranges::count(slow, i) > 0) {
      finding.status = Status::fail;
      finding.reason = fmt::format("{} has {:.0f} % of the median of {}", who,
                                   100 * samples[i].value / middle, samples.size());
    }
    findings.push_back(finding);
  }
}

std::vector<Sample> samples_of(const Measurements& measured, bool hosts_only,
                               const std::function<double(const RankMeasures&)>& value) {
  std::vector<Sample> samples;
  for (const RankMeasures& m : measured.ranks)
    if ((!hosts_only || m.first_of_host) && value(m) > 0)
      samples.push_back({m.rank, m.host, value(m)});
  return samples;
}

void compare_identities(std::vector<Finding>& findings, const Measurements& measured) {
  std::map<std::string, int> count;
  for (const RankMeasures& m : measured.ranks) ++count[m.identity];
  const auto most = std::ranges::max_element(count, {}, [](const auto& p) { return p.second; });
  for (const RankMeasures& m : measured.ranks) {
    if (!m.first_of_host) continue;
    Finding finding{.name = "versions", .rank = m.rank, .host = m.host, .expected = most->first};
    if (m.identity != most->first) {
      finding.status = Status::fail;
      finding.reason = fmt::format("this host has {}", m.identity);
    }
    findings.push_back(finding);
  }
}

void compare_clocks(std::vector<Finding>& findings, const Measurements& measured) {
  for (const RankMeasures& m : measured.ranks) {
    if (!m.first_of_host) continue;
    Finding finding{.name = "clock",
                    .rank = m.rank,
                    .host = m.host,
                    .value = m.clock_offset_seconds,
                    .unit = "s",
                    .expected = fmt::format("within {} s of the first host's", kClockLimit)};
    if (std::abs(m.clock_offset_seconds) > kClockLimit) {
      finding.status = Status::warn;
      finding.reason =
          fmt::format("the clock is {:.1f} s off; start a time service", m.clock_offset_seconds);
    }
    findings.push_back(finding);
  }
}

// A host is slow when most of its links are; only then single links are looked at, among the
// hosts that are not.
void compare_links(std::vector<Finding>& findings, const Measurements& measured, double tolerance) {
  std::map<int, std::string> hosts;
  for (const RankMeasures& m : measured.ranks) hosts[m.rank] = m.host;
  std::map<int, std::vector<double>> of_host;
  for (const Link& link : measured.between)
    for (const int end : {link.a, link.b}) of_host[end].push_back(link.bytes_per_second);
  std::vector<Sample> samples;
  for (const auto& [rank, rates] : of_host) samples.push_back({rank, hosts[rank], median(rates)});
  if (samples.size() > 2)
    compare_rates(findings, "network of a host", "MB/s", samples, tolerance, 1e6,
                  "its median link");
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.value);
  std::vector<int> bad;
  if (samples.size() > 2)
    for (const size_t i : slow_ones(values, tolerance)) bad.push_back(samples[i].rank);
  std::vector<Link> rest;
  for (const Link& link : measured.between)
    if (std::ranges::count(bad, link.a) + std::ranges::count(bad, link.b) == 0)
      rest.push_back(link);
  std::vector<double> rates;
  for (const Link& link : rest) rates.push_back(link.bytes_per_second);
  const std::vector<size_t> slow = slow_ones(rates, tolerance);
  for (size_t i = 0; i < rest.size(); ++i) {
    Finding finding{.name = fmt::format("link {} - {}", hosts[rest[i].a], hosts[rest[i].b]),
                    .level = 2,
                    .rank = rest[i].a,
                    .host = hosts[rest[i].a],
                    .value = rates[i] / 1e6,
                    .unit = "MB/s",
                    .expected = fmt::format("about {:.4g}", median(rates) / 1e6)};
    if (std::ranges::count(slow, i) > 0) {
      finding.status = Status::fail;
      finding.reason = fmt::format("{:.0f} % of the median link, while both hosts are well",
                                   100 * rates[i] / median(rates));
    }
    findings.push_back(finding);
  }
}

void judge_time(std::vector<Finding>& findings, const Measurements& measured, double tolerance) {
  compare_rates(findings, "sustained products", "GFLOP/s",
                samples_of(measured, false, [](const auto& m) { return median(m.rates); }),
                tolerance, 1e9, "under load it");
  for (const RankMeasures& m : measured.ranks) {
    if (m.rates.size() < 4) continue;
    std::vector<double> sorted = m.rates;
    std::ranges::sort(sorted);
    const double slowest = sorted[sorted.size() / 10] / median(m.rates);
    const auto quarter = static_cast<std::ptrdiff_t>(m.rates.size() / 4);
    const double first = median({m.rates.begin(), m.rates.begin() + quarter}),
                 last = median({m.rates.end() - quarter, m.rates.end()});
    Finding steady{.name = "variation over time",
                   .level = 3,
                   .rank = m.rank,
                   .host = m.host,
                   .value = slowest,
                   .expected = fmt::format("at least {}", kSteady)};
    if (slowest < kSteady) {
      steady.status = Status::warn;
      steady.reason =
          fmt::format("a tenth of the time it has less than {:.0f} % of its median", 100 * slowest);
    }
    findings.push_back(steady);
    Finding heat{.name = "heat", .level = 3, .rank = m.rank, .host = m.host, .value = last / first};
    if (m.throttled > 0) {
      heat.status = Status::fail;
      heat.reason = fmt::format("the processor slowed down {} times because of heat", m.throttled);
    } else if (last < kSteady * first) {
      heat.status = Status::warn;
      heat.reason = fmt::format("it ended at {:.0f} % of its first speed", 100 * last / first);
    }
    findings.push_back(heat);
  }
}

}  // namespace

std::vector<Finding> judge(const Measurements& measured, double tolerance) {
  std::vector<Finding> findings;
  for (const RankMeasures& m : measured.ranks)
    findings.insert(findings.end(), m.findings.begin(), m.findings.end());
  compare_identities(findings, measured);
  compare_clocks(findings, measured);
  if (measured.level < 2) return findings;
  if (measured.have_products) {
    compare_rates(findings, "DGEMM", "GFLOP/s",
                  samples_of(measured, false, [](const auto& m) { return m.double_flops; }),
                  tolerance, 1e9, "it");
    compare_rates(findings, "SGEMM", "GFLOP/s",
                  samples_of(measured, false, [](const auto& m) { return m.single_flops; }),
                  tolerance, 1e9, "it");
  } else {
    findings.push_back({.name = "DGEMM",
                        .level = 2,
                        .status = Status::skip,
                        .reason = "this renkei was built without OpenBLAS"});
  }
  // Disks and memory are shared with others, so the share that matters is larger.
  const double loose = std::max(0.5, tolerance);
  compare_rates(findings, "memory", "GB/s",
                samples_of(measured, true, [](const auto& m) { return m.memory_bytes_per_second; }),
                loose, 1e9, "it");
  compare_rates(findings, "disk write", "MB/s",
                samples_of(measured, true, [](const auto& m) { return m.disk_write; }), loose, 1e6,
                "it");
  compare_rates(findings, "disk read", "MB/s",
                samples_of(measured, true, [](const auto& m) { return m.disk_read; }), loose, 1e6,
                "it");
  for (const RankMeasures& m : measured.ranks)
    if (m.first_of_host && m.disk_write == 0)
      findings.push_back({.name = "disk write",
                          .level = 2,
                          .status = Status::skip,
                          .rank = m.rank,
                          .host = m.host,
                          .reason = "no file can be written in check.directory"});
  compare_links(findings, measured, tolerance);
  if (measured.level >= 3) judge_time(findings, measured, tolerance);
  return findings;
}

}  // namespace renkei::check
