// The energy that the processors of this host have used, as RAPL counts it: one counter of
// microjoules for each package, in sysfs, which wraps around.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace renkei::dense {

class EnergyMeter {
 public:
  // `sysfs` is /sys, or a copy of it for tests. Begins to count.
  explicit EnergyMeter(const std::filesystem::path& sysfs = "/sys");

  // Since the beginning; empty where no counter may be read. Right as long as no counter has
  // wrapped twice, which takes a processor at full load about a quarter of an hour.
  std::optional<double> joules() const;

 private:
  struct Counter {
    std::filesystem::path file;
    int64_t range;  // microjoules after which it begins again
    int64_t begin;
  };
  std::vector<Counter> counters_;
};

}  // namespace renkei::dense
