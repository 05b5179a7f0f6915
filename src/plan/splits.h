// Proposals for the search: good ways to cut a model into stages and to give them devices, by
// dynamic programming.
//
// With m micro-batches a balanced pipeline takes about L + (m - 1) c: L is the way of one
// micro-batch through all stages and back, c the slowest stage. So for each bound on c the least L
// is found, over all cuts and numbers of devices:
//
//   L(k, i, d) = min over j, r of  L(k - 1, j, d - r) + w(i, j, r) + transfer(j),   w(i, j, r) <= c
//
// the last k stages, from cut i to the end, on d devices; w is the time of the stage between i and
// j on r devices, with recompute where it would not fit otherwise (the k-th stage from the end has
// up to k micro-batches in flight with 1F1B). One table serves all numbers of stages.
//
// GPipe waits for the slowest forward and then for the slowest backward, whichever stages these
// are. With a forward_share a of the bound, a stage must keep f <= a c and b <= (1 - a) c.
//
// Where devices differ, the last k stages have the last d of them, so it is known which a stage
// gets; with as many for each stage, that takes a table for each number of stages.
#pragma once

#include <functional>
#include <vector>

#include "plan/objective.h"

namespace renkei::plan {

struct Split {
  std::vector<size_t> cuts;
  std::vector<int> replicas;  // of each stage

  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const Split&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct SplitOptions {
  int micro_batches = 1;
  // Devices come in units; with `uniform`, each stage gets one, else any number.
  int unit = 1;
  int units = 1;
  bool uniform = true;
  int most_stages = 1;
  bool by_place = false;     // stages have the devices of their place; uniform: only most_stages
  double forward_share = 0;  // 0: forward and backward are bounded together
  size_t most_cuts = 64;     // a finer choice is left to refinement
};

// Several for each number of stages, each once; those found so far when `expired` ends it.
std::vector<Split> propose_splits(const Objective& objective, const SplitOptions& options,
                                  const std::function<bool()>& expired);

// As many stages as replicas are given, with about equal times, by the speed of their devices.
Split equal_times(const Objective& objective, std::vector<int> replicas, double samples);

}  // namespace renkei::plan
