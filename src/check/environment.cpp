#include "check/environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <fstream>
#include <map>

#include "base/units.h"
#include "base/version.h"
#include "check/pci.h"
#include "cluster/limits.h"
#include "comm/mpi/mpi_world.h"

namespace renkei::check {
namespace {

constexpr int64_t kLockedMemory = int64_t{64} << 20;   // what network cards pin at least
constexpr int64_t kSharedMemory = int64_t{256} << 20;  // of gradients that ranks of a host share
constexpr int64_t kRoom = int64_t{1} << 30;

std::string line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

Finding limit(const std::string& name, int64_t have, int64_t need, const std::string& raise) {
  Finding finding{.name = name, .unit = "", .expected = fmt::format("at least {}", need)};
  if (have >= 0) finding.value = static_cast<double>(have);
  if (have >= 0 && have < need) {
    finding.status = Status::fail;
    finding.reason = fmt::format("the limit is {}; raise it: {}", have, raise);
  }
  return finding;
}

int64_t locked_memory_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_cur);
}

Finding room(const std::string& name, const std::filesystem::path& directory, int64_t need) {
  Finding finding{
      .name = name, .unit = "bytes", .expected = fmt::format("at least {}", format_size(need))};
  struct statvfs system {};
  if (::statvfs(directory.c_str(), &system) != 0) {
    finding.status = Status::skip;
    finding.reason = fmt::format("{} can't be asked", directory.string());
    return finding;
  }
  const auto free = static_cast<int64_t>(system.f_bavail * system.f_frsize);
  finding.value = static_cast<double>(free);
  if (free < need) {
    finding.status = Status::warn;
    finding.reason = fmt::format("{} has {} left", directory.string(), format_size(free));
  }
  return finding;
}

Finding governor(const std::filesystem::path& sysfs) {
  Finding finding{.name = "processor governor", .expected = "performance"};
  std::map<std::string, int> cores;
  std::error_code missing;
  for (const auto& cpu :
       std::filesystem::directory_iterator(sysfs / "devices/system/cpu", missing)) {
    const std::string word = line_of(cpu.path() / "cpufreq/scaling_governor");
    if (!word.empty()) ++cores[word];
  }
  if (cores.empty()) {
    finding.status = Status::skip;
    finding.reason = "the system does not tell it (a virtual machine?)";
  }
  for (const auto& [word, count] : cores)
    if (word != "performance") {
      finding.status = Status::warn;
      finding.reason = fmt::format(
          "{} cores are set to '{}'; cpupower frequency-set -g performance", count, word);
    }
  return finding;
}

Finding huge_pages(const std::filesystem::path& sysfs) {
  Finding finding{.name = "transparent huge pages", .expected = "always or madvise"};
  const std::string line = line_of(sysfs / "kernel/mm/transparent_hugepage/enabled");
  if (line.empty()) {
    finding.status = Status::skip;
    finding.reason = "the system does not tell it";
  } else if (line.find("[never]") != std::string::npos) {
    finding.status = Status::warn;
    finding.reason = "they are off; large arrays are slower";
  }
  return finding;
}

// The NUMA nodes whose cores a mask has.
int numa_nodes(const cpu_set_t& mask, const std::filesystem::path& sysfs) {
  int nodes = 0;
  std::error_code missing;
  for (const auto& node :
       std::filesystem::directory_iterator(sysfs / "devices/system/node", missing)) {
    if (!node.path().filename().string().starts_with("node")) continue;
    bool ours = false;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(node.path(), none)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("cpu") && name.size() > 3 && std::isdigit(name[3]))
        ours = ours || CPU_ISSET(std::stoul(name.substr(3)), &mask);
    }
    nodes += ours ? 1 : 0;
  }
  return nodes;
}

Finding binding(const EnvironmentOptions& options) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  const int cores = CPU_COUNT(&mask);
  Finding finding{.name = "binding",
                  .value = cores,
                  .unit = "cores",
                  .expected = fmt::format("at least {}, of one NUMA node", options.threads)};
  const int nodes = numa_nodes(mask, options.sysfs);
  if (cores < options.threads) {
    finding.status = Status::warn;
    finding.reason = fmt::format("{} threads share {} cores", options.threads, cores);
  } else if (nodes > 1 && options.local_ranks > 1) {
    finding.status = Status::warn;
    finding.reason = fmt::format(
        "it may move between {} NUMA nodes; bind ranks: mpirun --bind-to numa, srun --cpu-bind",
        nodes);
  }
  return finding;
}

}  // namespace

std::vector<Finding> rank_environment(const EnvironmentOptions& options) {
  const cluster::Limits have = cluster::current_limits(),
                        need = cluster::needed_limits(options.ranks);
  return {limit("open files", have.descriptors, need.descriptors,
                fmt::format("ulimit -n {}", need.descriptors)),
          limit("stack", have.stack_bytes, need.stack_bytes,
                fmt::format("ulimit -s {}", (need.stack_bytes + 1023) / 1024)),
          [] {
            Finding locked =
                limit("locked memory", locked_memory_limit(), kLockedMemory, "ulimit -l unlimited");
            // Only cards that pin memory need it.
            if (locked.status == Status::fail) locked.status = Status::warn;
            return locked;
          }(),
          binding(options)};
}

std::vector<Finding> host_environment(const EnvironmentOptions& options) {
  return {room("shared memory", "/dev/shm", kSharedMemory),
          room("free space", options.directory, kRoom), huge_pages(options.sysfs),
          governor(options.sysfs)};
}

std::vector<Finding> pci_findings(const std::filesystem::path& sysfs) {
  std::vector<Finding> findings;
  for (const PciLink& link : pci_links(sysfs)) {
    Finding finding{.name = "PCIe link",
                    .level = 2,
                    .value = link.width,
                    .unit = "lanes",
                    .expected = fmt::format("x{} at {} GT/s", link.most_width, link.most_speed)};
    if (link.width < link.most_width) {
      finding.status = Status::fail;
      finding.reason = fmt::format("the {} {} came up x{} instead of x{}; seat it anew", link.kind,
                                   link.address, link.width, link.most_width);
    } else if (link.speed < link.most_speed) {
      finding.status = Status::warn;  // idle cards lower it by themselves
      finding.reason = fmt::format("the link of the {} {} runs at {} GT/s; look again under load",
                                   link.kind, link.address, link.speed);
    }
    findings.push_back(finding);
  }
  if (findings.empty())
    findings.push_back({.name = "PCIe link",
                        .level = 2,
                        .status = Status::skip,
                        .reason = "no card of this host tells its link"});
  return findings;
}

std::string host_identity() {
  utsname system{};
  uname(&system);
  std::string processor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  return fmt::format("renkei {}; {}; Linux {}; {}", kVersion, comm::mpi_library(), system.release,
                     processor);
}

int64_t throttle_count(const std::filesystem::path& sysfs) {
  int64_t sum = -1;
  std::error_code missing;
  for (const auto& cpu :
       std::filesystem::directory_iterator(sysfs / "devices/system/cpu", missing)) {
    std::ifstream file(cpu.path() / "thermal_throttle/core_throttle_count");
    int64_t count = 0;
    if (file >> count) sum = std::max<int64_t>(sum, 0) + count;
  }
  return sum;
}

}  // namespace renkei::check
