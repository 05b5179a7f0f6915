// Which layouts are best? The operations are gone through in their order. What matters for those
// that follow is in which layouts the values are there that are still used: of all ways to the same
// such state the cheapest stays. That is dynamic programming over the frontier, and exact for
// chains, trees and blocks with residuals, whose frontier is a few values; where there are more
// states than `most_states` the cheapest ones stay, and `exact` says so.
//
// A cost is the time of a step on one rank, without what overlaps: computing by the roofline of the
// device, forward and back; exchanges in the group; once a step the update of what the rank has of
// the parameters, and the sum of the gradients of those that are copied.
#pragma once

#include "shard/choice.h"

namespace renkei::shard {

struct Costs {
  double flops_per_second = 1e13;
  double bytes_per_second = 1e12;
  double call_seconds = 5e-6;
  double allreduce_latency_seconds = 2e-5;  // over the tensor group
  double allreduce_seconds_per_byte = 2e-11;
  int64_t samples = 1;          // of a micro-batch, of the whole group
  double micro_batches = 1;     // of a step
  double touched_per_byte = 5;  // bytes that an update reads and writes for one of a parameter
  double seconds_per_state_byte = 0;  // what a byte of parameters is worth, where memory is short
};

struct SolveOptions {
  int parts = 2;
  bool batch = true;            // may the batch be split?
  bool counted_dropout = true;  // see RuleOptions
  Costs costs = {};
  Pins pins = {};
  size_t most_states = 512;
};

struct Solution {
  Choice choice;
  double seconds = 0;  // of a micro-batch, and its share of what is done once a step
  bool exact = true;
};

// Throws a usage Error where a pin does not fit its parameter.
Solution solve(const program::Program& program, const SolveOptions& options);

}  // namespace renkei::shard
