#include "check/acceptance.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "check/environment.h"
#include "check/loads.h"
#include "cluster/local_machine.h"
#include "comm/collectives/all_gather.h"
#include "comm/collectives/broadcast.h"
#include "comm/collectives/exchange.h"
#include "comm/collectives/gather.h"
#include "dense/product.h"

namespace renkei::check {
namespace {

constexpr comm::Call kAsk{.operation = "acceptance test"};
constexpr int kClockTrips = 5, kAttempts = 5;

nlohmann::json json_of(const RankMeasures& m) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : m.findings) findings.push_back(json_of(finding));
  return {{"rank", m.rank},
          {"host", m.host},
          {"first", m.first_of_host},
          {"identity", m.identity},
          {"single", m.single_flops},
          {"double", m.double_flops},
          {"memory", m.memory_bytes_per_second},
          {"room", m.memory_bytes},
          {"write", m.disk_write},
          {"read", m.disk_read},
          {"clock", m.clock_offset_seconds},
          {"rates", m.rates},
          {"throttled", m.throttled},
          {"findings", findings}};
}

RankMeasures measures_from(const nlohmann::json& json) {
  RankMeasures m{.rank = json.at("rank"),
                 .host = json.at("host"),
                 .first_of_host = json.at("first"),
                 .identity = json.at("identity"),
                 .single_flops = json.at("single"),
                 .double_flops = json.at("double"),
                 .memory_bytes_per_second = json.at("memory"),
                 .memory_bytes = json.at("room"),
                 .disk_write = json.at("write"),
                 .disk_read = json.at("read"),
                 .clock_offset_seconds = json.at("clock"),
                 .rates = json.at("rates").get<std::vector<double>>(),
                 .throttled = json.at("throttled")};
  for (const auto& finding : json.at("findings")) m.findings.push_back(finding_from(finding));
  return m;
}

// Where the ranks of this job sit.
struct Seats {
  std::vector<int> first_ranks;  // of every host
  std::vector<int> mine;         // the ranks of this host
  int most_ranks = 0;            // of any host

  explicit Seats(const comm::Transport& transport) {
    std::map<std::string, int> ranks_of;
    for (int rank = 0; rank < transport.size(); ++rank) {
      if (++ranks_of[transport.host(rank)] == 1) first_ranks.push_back(rank);
      most_ranks = std::max(most_ranks, ranks_of[transport.host(rank)]);
      if (transport.host(rank) == transport.host(transport.rank())) mine.push_back(rank);
    }
  }
};

// Host by host, how far the clock is ahead of rank 0's: the trip that took least tells best.
double clock_offset(comm::Transport& transport, const std::vector<int>& hosts) {
  double offset = 0;
  for (const int peer : hosts) {
    if (peer == 0) continue;
    double best_trip = 1e300, found = 0;
    for (int i = 0; i < kClockTrips; ++i) {
      double times[2] = {wall_seconds(), 0};
      const auto bytes = std::as_writable_bytes(std::span(times));
      if (transport.rank() == 0) {
        comm::send_and_wait(transport, peer, bytes, comm::Tag::link_check, kAsk);
        comm::receive_and_wait(transport, peer, bytes, comm::Tag::link_check, kAsk);
        const double trip = wall_seconds() - times[0];
        if (trip < best_trip) {
          best_trip = trip;
          found = times[1] - times[0] - trip / 2;
        }
      } else if (transport.rank() == peer) {
        comm::receive_and_wait(transport, 0, bytes, comm::Tag::link_check, kAsk);
        times[1] = wall_seconds();
        comm::send_and_wait(transport, 0, bytes, comm::Tag::link_check, kAsk);
      }
    }
    const auto bytes = std::as_writable_bytes(std::span(&found, 1));
    if (transport.rank() == 0)
      comm::send_and_wait(transport, peer, bytes, comm::Tag::link_check, kAsk);
    if (transport.rank() == peer) {
      comm::receive_and_wait(transport, 0, bytes, comm::Tag::link_check, kAsk);
      offset = found;
    }
  }
  return offset;
}

int cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  return std::max(1, CPU_COUNT(&mask));
}

// Ranks with cores of their own are measured together, as they will work. Those that share cores
// take turns, or they would measure each other. Who is far below the best is measured again, and
// the best counts: what is broken stays slow, what was only disturbed does not.
void measure_products(comm::Transport& transport, const Seats& seats, const Options& options,
                      RankMeasures& mine) {
  const bool together = static_cast<int>(seats.mine.size()) * options.threads <= cores();
  const auto place = std::ranges::find(seats.mine, transport.rank()) - seats.mine.begin();
  std::vector<double> all(static_cast<size_t>(transport.size()));
  bool wanted = true;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (int turn = 0; turn < seats.most_ranks; ++turn) {
      quiet_barrier(transport);
      if (!wanted || turn != (together ? 0 : place)) continue;
      const auto best = [&](double before, bool wide, double seconds) {
        return std::max(before, best_product_rate(wide, options.threads, seconds));
      };
      mine.double_flops = best(mine.double_flops, true, options.product_seconds);
      mine.single_flops = best(mine.single_flops, false, options.product_seconds / 2);
    }
    quiet_barrier(transport);
    comm::all_gather(transport, std::span(&mine.double_flops, 1), std::span(all), kAsk);
    const double limit = (1 - options.tolerance) * *std::ranges::max_element(all);
    if (*std::ranges::min_element(all) >= limit) break;
    wanted = mine.double_flops < limit;
  }
}

// The same for links: the best of each pair, again while one is far below the best of all.
std::vector<Link> best_links(comm::Transport& transport, const std::vector<int>& ranks,
                             const Options& options) {
  std::vector<Link> best;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::vector<Link> found = measure_links(transport, ranks, options.link_seconds);
    if (attempt == 0) best = found;
    double most = 0, least = 1e300;
    for (size_t i = 0; i < best.size(); ++i) {
      best[i].bytes_per_second = std::max(best[i].bytes_per_second, found[i].bytes_per_second);
      best[i].latency_seconds = std::min(best[i].latency_seconds, found[i].latency_seconds);
      most = std::max(most, best[i].bytes_per_second);
      least = std::min(least, best[i].bytes_per_second);
    }
    int64_t again = least < (1 - options.tolerance) * most ? 1 : 0;
    comm::broadcast(transport, std::span(&again, 1), 0, kAsk);
    if (again == 0) break;
  }
  return best;
}

void measure_host(const Options& options, RankMeasures& mine) {
  const cluster::MachineSpeed speed = cluster::measure_machine();
  mine.memory_bytes_per_second = speed.memory_bytes_per_second;
  mine.memory_bytes = static_cast<double>(speed.memory_bytes);
  if (const auto disk = disk_speed(options.directory)) {
    mine.disk_write = disk->write_bytes_per_second;
    mine.disk_read = disk->read_bytes_per_second;
  }
  for (const Finding& finding : pci_findings(options.sysfs)) mine.findings.push_back(finding);
}

std::vector<Link> inside_links(comm::Transport& transport, double seconds) {
  std::vector<int> pair;
  for (int rank = 1; rank < transport.size() && pair.empty(); ++rank)
    if (transport.host(rank) == transport.host(0)) pair = {0, rank};
  return measure_links(transport, pair, seconds);
}

}  // namespace

Measurements measure(comm::Transport& transport, const Options& options) {
  const Seats seats(transport);
  const auto tell = [&](const std::string& what) {
    if (transport.rank() == 0 && options.progress) options.progress(what);
  };
  RankMeasures mine{.rank = transport.rank(),
                    .host = transport.host(transport.rank()),
                    .first_of_host = seats.mine.front() == transport.rank(),
                    .identity = host_identity()};
  const EnvironmentOptions environment{.sysfs = options.sysfs,
                                       .directory = options.directory,
                                       .ranks = transport.size(),
                                       .local_ranks = static_cast<int>(seats.mine.size()),
                                       .threads = options.threads};
  tell("what the system tells");
  mine.findings = rank_environment(environment);
  if (mine.first_of_host)
    for (const Finding& finding : host_environment(environment)) mine.findings.push_back(finding);
  mine.clock_offset_seconds = clock_offset(transport, seats.first_ranks);

  Measurements measured{.level = options.level, .have_products = dense::have_products()};
  if (options.level >= 2) {
    tell("memory and disks");
    quiet_barrier(transport);
    if (mine.first_of_host) measure_host(options, mine);
    if (measured.have_products) {
      tell("products of every rank");
      measure_products(transport, seats, options, mine);
    }
    tell("links between all pairs of hosts");
    measured.between = best_links(transport, seats.first_ranks, options);
    measured.inside = inside_links(transport, options.link_seconds);
  }
  if (options.level >= 3 && measured.have_products) {
    tell("all ranks under load");
    const int64_t before = throttle_count(options.sysfs);
    quiet_barrier(transport);
    mine.rates =
        product_rates_over_time(options.threads, options.sustain_seconds, [&](double done) {
          tell(fmt::format("under load for {:.0f} of {:.0f} s", done, options.sustain_seconds));
        });
    if (before >= 0) mine.throttled = throttle_count(options.sysfs) - before;
  }
  for (Finding& finding : mine.findings) {
    finding.rank = mine.rank;
    finding.host = mine.host;
  }
  quiet_barrier(transport);
  for (const std::string& text : comm::gather_texts(transport, json_of(mine).dump(), kAsk))
    measured.ranks.push_back(measures_from(nlohmann::json::parse(text)));
  return measured;
}

}  // namespace renkei::check
