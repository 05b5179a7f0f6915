#include "dense/energy.h"

#include <fstream>

#include "tests/base/temporary_directory.h"

namespace renkei::dense {
namespace {

void write_counter(const std::filesystem::path& sysfs, const std::string& zone, int64_t value) {
  const auto directory = sysfs / "class/powercap" / zone;
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "energy_uj") << value << "\n";
  std::ofstream(directory / "max_energy_range_uj") << 1'000'000'000 << "\n";
}

TEST(EnergyMeter, AddsPackagesAndNotTheirParts) {
  const test::TemporaryDirectory sysfs;
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"})
    write_counter(sysfs.path(), zone, 5'000'000);
  const EnergyMeter meter(sysfs.path());
  write_counter(sysfs.path(), "intel-rapl:0", 7'000'000);
  write_counter(sysfs.path(), "intel-rapl:1", 8'500'000);
  write_counter(sysfs.path(), "intel-rapl:0:0", 6'000'000);
  EXPECT_DOUBLE_EQ(*meter.joules(), 5.5);
}

TEST(EnergyMeter, FollowsACounterThatBeginsAgain) {
  const test::TemporaryDirectory sysfs;
  write_counter(sysfs.path(), "intel-rapl:0", 999'000'000);
  const EnergyMeter meter(sysfs.path());
  write_counter(sysfs.path(), "intel-rapl:0", 3'000'000);
  EXPECT_DOUBLE_EQ(*meter.joules(), 4);
}

TEST(EnergyMeter, SaysNothingWithoutCounters) {
  const test::TemporaryDirectory sysfs;
  EXPECT_FALSE(EnergyMeter(sysfs.path()).joules());
}

}  // namespace
}  // namespace renkei::dense
