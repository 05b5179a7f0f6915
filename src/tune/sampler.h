// Which point to try next? Of the trials so far, the best tenth is "good". l is the density of the
// good points, g that of the rest; of some points drawn from l, the one with the largest l/g is
// tried, which is the one with the largest expected improvement (Bergstra et al., 2011).
//
// Parameters that always exist are one joint density; one that depends on another has its own, from
// the trials that had it. Trials under way count as bad, so that parallel ones keep apart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/space.h"

namespace renkei::tune {

struct Trial {
  int64_t number = 0;
  Point point = {};
  std::optional<double> loss = {};  // less is better; empty: failed or stopped, worse than any
  double seconds = 0;
  bool pending = false;
};

struct SamplerOptions {
  uint64_t seed = 0;
  int startup = 10;     // random trials first
  int candidates = 24;  // drawn from l
};

// A usage Error where no point satisfies the constraints.
Point suggest(const Space& space, const std::vector<Trial>& trials, int64_t number,
              const SamplerOptions& options);
Point random_point(const Space& space, int64_t number, uint64_t seed);

}  // namespace renkei::tune
