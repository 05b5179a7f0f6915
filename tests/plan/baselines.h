// Published rules for dividing a model, to compare with. Each gives a layout of our space; where a
// rule leaves something open (the number of micro-batches), the best for it is taken.
#pragma once

#include <string>
#include <vector>

#include "plan/objective.h"

namespace renkei::test {

struct Baseline {
  std::string name;
  std::vector<plan::Layout> layouts;  // the best of them counts
};

// As many stages as devices, with as equal parameters, or times, as the order of ops allows.
Baseline equal_parameters(const plan::Objective& objective, const std::vector<int>& micro_batches);
Baseline equal_times(const plan::Objective& objective, const std::vector<int>& micro_batches);

// PipeDream (Narayanan et al., 2019): any number of replicas for each stage, so that the slowest of
// all stages and transfers is as fast as possible; 1F1B.
Baseline pipedream(const plan::Objective& objective, const std::vector<int>& micro_batches);

// RaNNC (Tanaka et al., 2021): at most 32 blocks of ops; the fewest stages for which anything fits,
// powers of two as replicas, the least sum of the slowest forward and the slowest backward; GPipe.
Baseline rannc(const plan::Objective& objective);

}  // namespace renkei::test
