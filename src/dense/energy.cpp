#include "dense/energy.h"

#include <fstream>

namespace renkei::dense {
namespace {

std::optional<int64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  int64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

}  // namespace

EnergyMeter::EnergyMeter(const std::filesystem::path& sysfs) {
  std::error_code missing;
  for (const auto& zone : std::filesystem::directory_iterator(sysfs / "class/powercap", missing)) {
    // "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of it and would count twice.
    const std::string name = zone.path().filename();
    if (!name.starts_with("intel-rapl:") || name.find(':') != name.rfind(':')) continue;
    const auto begin = number_in(zone.path() / "energy_uj");
    const auto range = number_in(zone.path() / "max_energy_range_uj");
    if (begin && range) counters_.push_back({zone.path() / "energy_uj", *range, *begin});
  }
}

std::optional<double> EnergyMeter::joules() const {
  if (counters_.empty()) return std::nullopt;
  double microjoules = 0;
  for (const Counter& counter : counters_) {
    const auto now = number_in(counter.file);
    if (!now) return std::nullopt;
    const int64_t used = *now - counter.begin;
    microjoules += static_cast<double>(used < 0 ? used + counter.range : used);
  }
  return microjoules * 1e-6;
}

}  // namespace renkei::dense
