// A step of training on a cluster that need not be there: the task lists of its plan, executed in
// virtual time by the rules of schedule/evaluate.h. Computation takes what the planner counts with,
// longer on slower devices of a kind; gradients are summed as reductions.h says.
//
// Where the time goes is found by leaving causes out, one after the other, so that the parts add up
// to the step:
//
//   communication   what a network that takes no time would save
//   imbalance       and what devices of equal speed without jitter would save then
//   bubble          and what is then neither computing, nor loading samples, nor updating
#pragma once

#include <cstdint>
#include <vector>

#include "plan/objective.h"
#include "schedule/evaluate.h"
#include "sim/reductions.h"

namespace renkei::sim {

struct StepOptions {
  ReductionOptions reduction;
  double load_seconds_per_sample = 0;  // that do not hide behind computing
  double compute_factor = 1;  // on the times of the planner: what a device was measured to take
  double jitter = 0;          // of each computation, relative standard deviation
  int steps = 1;              // to take the mean of
  uint64_t seed = 0;
};

struct StepParts {
  double compute = 0, data = 0, update = 0, bubble = 0, imbalance = 0, communication = 0;
  double seconds() const { return compute + data + update + bubble + imbalance + communication; }
};

struct SimulatedStep {
  double seconds = 0;
  StepParts parts;
  std::string algorithm;            // of the largest reduction
  schedule::Evaluation evaluation;  // of the last step, with events
};

// `evaluated` is a layout with its costs.
SimulatedStep simulate_step(const plan::Objective& objective, const plan::Evaluated& evaluated,
                            const StepOptions& options);

// How much longer than a device of mean speed this one takes: at least half as long.
double slowness(const cluster::Description& machine, const cluster::Place& place, int device,
                uint64_t seed);

}  // namespace renkei::sim
