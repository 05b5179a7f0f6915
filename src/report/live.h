// A run that goes on: how far it is, and, when nothing moves any more, which rank the others wait
// for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "timeline/rank_file.h"

namespace renkei::report {

struct LiveStatus {
  int64_t steps = 0;         // done by all ranks
  double quiet_seconds = 0;  // since any rank was seen to do anything
  double step_seconds = 0;   // median of the last steps
  double samples_per_second = 0;
  bool finished = false;
  int culprit = -1;      // of a job that hangs: the rank that the others wait for
  std::string sentence;  // "step 812, 24 ms each", "nothing for 31 s: rank 2 is in forward, …"
  std::vector<std::string> operations;  // of each rank, the last that it entered
};

// `now` in seconds since 1970.
LiveStatus live_status(const std::vector<timeline::RankTimeline>& ranks, double now);

nlohmann::json to_json(const LiveStatus& status);
// In the text format of Prometheus.
std::string prometheus_text(const LiveStatus& status,
                            const std::vector<timeline::RankTimeline>& ranks);

}  // namespace renkei::report
