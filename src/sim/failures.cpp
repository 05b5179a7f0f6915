#include "sim/failures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/philox.h"

namespace renkei::sim {
namespace {

constexpr int kMostFailures = 100'000;

double mean_between(int devices, const FailureOptions& options) {
  return options.device_hours_between * 3600 / devices;
}

}  // namespace

double best_save_interval(int devices, const FailureOptions& options) {
  return std::sqrt(2 * options.save_seconds * mean_between(devices, options));
}

JobTime time_with_failures(double work_seconds, int devices, const FailureOptions& options) {
  JobTime job;
  double done = 0;  // and saved
  const bool saves = options.save_every_seconds > 0;
  const auto next_failure = [&] {
    if (options.device_hours_between <= 0) return std::numeric_limits<double>::infinity();
    Random random(options.seed, RandomUse::simulated_failure, 0,
                  static_cast<uint64_t>(job.failures));
    return -std::log(1 - static_cast<double>(random.uniform())) * mean_between(devices, options);
  };
  double until_failure = next_failure();
  while (done < work_seconds) {
    const double left = work_seconds - done;
    const double piece = saves ? std::min(left, options.save_every_seconds) : left;
    const double save = saves && piece < left ? options.save_seconds : 0;
    if (piece + save <= until_failure) {
      done += piece;
      job.saving += save;
      job.seconds += piece + save;
      until_failure -= piece + save;
      continue;
    }
    job.lost += until_failure;
    job.restarting += options.restart_seconds;
    job.seconds += until_failure + options.restart_seconds;
    if (++job.failures == kMostFailures) {
      job.ends = false;
      return job;
    }
    until_failure = next_failure();
  }
  return job;
}

}  // namespace renkei::sim
