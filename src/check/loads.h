// What a rank or a host does under load.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace renkei::check {

// The best of some windows, each longer than the periods in which systems give out shares of a
// core: other work disturbs some windows, but a share of half a core halves all of them.
double best_product_rate(bool double_precision, int threads, double seconds);

// The rate of every window of about a second, for as long as it is told.
std::vector<double> product_rates_over_time(int threads, double seconds,
                                            const std::function<void(double done)>& progress);

struct DiskSpeed {
  double write_bytes_per_second = 0;  // until it is safe
  double read_bytes_per_second = 0;   // without the cache of the system, where it lets go of it
};
// Empty where no file can be written there.
std::optional<DiskSpeed> disk_speed(const std::filesystem::path& directory);

}  // namespace renkei::check
