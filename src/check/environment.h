// What can be seen without measuring: limits, settings of the system, room, links of cards.
#pragma once

#include <filesystem>
#include <vector>

#include "check/finding.h"

namespace renkei::check {

struct EnvironmentOptions {
  std::filesystem::path sysfs = "/sys";
  std::filesystem::path directory = "/tmp";  // where jobs put their files
  int ranks = 1;
  int local_ranks = 1;
  int threads = 1;  // of each rank
};

// Of this process: what may differ from rank to rank.
std::vector<Finding> rank_environment(const EnvironmentOptions& options);
// Of this host.
std::vector<Finding> host_environment(const EnvironmentOptions& options);
std::vector<Finding> pci_findings(const std::filesystem::path& sysfs);

// What must be the same everywhere: versions of Renkei, MPI, the kernel, the processor.
std::string host_identity();

// How often the processors of this host were slowed down by heat; -1: not told.
int64_t throttle_count(const std::filesystem::path& sysfs);

}  // namespace renkei::check
