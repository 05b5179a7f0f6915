// Times several things fairly: round after round, one after the other, in the same processes. On a
// shared machine only what ran in the same second can be compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace renkei::bench {

// Something that is timed: `run` does it once, on all ranks.
struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};  // of one run, in each round, by the slowest rank

  double quantile_us(double q) const;
  double median_us() const { return quantile_us(0.5); }
};

// All ranks together; all get the same times.
void time_interleaved(comm::Communicator& communicator, std::vector<Contestant>& contestants,
                      int rounds, const comm::Call& call);

}  // namespace renkei::bench
