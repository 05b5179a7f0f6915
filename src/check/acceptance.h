// The acceptance test of a cluster. A card whose link came up half as wide runs, only slow, and
// synchronous work runs at the speed of its slowest part: so every part is measured alone, and
// those that are not like the others are named.
//
//   level 1   seconds          what the system tells: limits, versions, clocks, room, binding
//   level 2   about a minute   products of every rank, memory, cards, disks, all pairs of hosts
//   level 3   15 minutes       all ranks at full load: variation over time, heat
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/settings.h"
#include "check/finding.h"
#include "check/links.h"
#include "cluster/description.h"
#include "comm/transport/transport.h"

namespace renkei::check {

struct Options {
  int level = 2;
  std::filesystem::path sysfs = "/sys";
  std::filesystem::path directory = "/tmp";
  double tolerance = 0.2;
  double sustain_seconds = 780;
  double product_seconds = 0.6;
  double link_seconds = 0.25;
  int threads = 1;
  std::function<void(const std::string& what)> progress = {};
};

void declare_settings(Settings& settings);
Options options_from(const Settings& settings, int level, int threads);

// What one rank measured; 0 where it did not. The numbers of a host come from its first rank.
struct RankMeasures {
  int rank = 0;
  std::string host;
  bool first_of_host = false;
  std::string identity;
  double single_flops = 0, double_flops = 0;  // products per second, f32 and f64
  double memory_bytes_per_second = 0;
  double memory_bytes = 0;
  double disk_write = 0, disk_read = 0;
  double clock_offset_seconds = 0;  // against rank 0
  std::vector<double> rates;        // over time, at level 3
  int64_t throttled = -1;
  std::vector<Finding> findings;
};

struct Measurements {
  int level = 1;
  bool have_products = true;
  std::vector<RankMeasures> ranks;
  std::vector<Link> between;  // first ranks of hosts
  std::vector<Link> inside;   // the first two ranks of a host
};

// All ranks together; rank 0 gets everything.
Measurements measure(comm::Transport& transport, const Options& options);

// All findings, of single ranks and of their comparison. Pure.
std::vector<Finding> judge(const Measurements& measured, double tolerance);

// As a machine that `renkei plan --cluster FILE` reads. Needs level 2.
cluster::Description describe(const Measurements& measured);
// What is worse than it was by more than the tolerance.
std::vector<Finding> compare(const cluster::Description& now, const cluster::Description& before,
                             double tolerance);

// One page: the findings, the sorted rates of the ranks, the map of the links.
std::string page_of(const Measurements& measured, const std::vector<Finding>& findings);

}  // namespace renkei::check
