// How long does a job take on devices that fail? It saves every now and then; a failure throws away
// what was done since, and costs a restart. Failures come at random, each device at the same mean
// rate, so a job on n devices fails n times as often.
#pragma once

#include <cstdint>

namespace renkei::sim {

struct FailureOptions {
  double device_hours_between = 0;  // mean, of one device; 0: none fails
  double save_every_seconds = 0;    // of work; 0: never
  double save_seconds = 0;
  double restart_seconds = 0;
  uint64_t seed = 0;
};

struct JobTime {
  double seconds = 0;  // all of it: work, saving, work that was lost, restarts
  double saving = 0, lost = 0, restarting = 0;
  int failures = 0;
  bool ends = true;  // false: it fails before it has done anything, again and again
};

JobTime time_with_failures(double work_seconds, int devices, const FailureOptions& options);

// The interval between saves that loses least (Young, 1974): sqrt(2 saving × between failures).
double best_save_interval(int devices, const FailureOptions& options);

}  // namespace renkei::sim
