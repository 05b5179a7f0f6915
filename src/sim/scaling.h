// How does training behave on N devices? A scenario is a model, a machine and how it is trained;
// each number of devices gives a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/search.h"
#include "sim/failures.h"
#include "sim/reading.h"
#include "sim/step.h"

namespace renkei::sim {

struct Scenario {
  graph::Graph graph;
  cluster::Description machine;
  int64_t batch = 0;  // of a step, however many devices; 0: `batch_per_device` on each
  int64_t batch_per_device = 32;
  int micro_batches = 1;                           // of data parallel training
  std::optional<plan::SearchOptions> search = {};  // plan it; else data parallel
  double optimizer_state = 1;                      // as in plan::Problem
  int64_t memory_bytes = 0;                        // of each device; 0: what the machine has
  bool replicas_of_a_node_share = false;
  // Of one device by itself, at batch_per_device: what was measured takes the place of estimates.
  std::optional<double> device_samples_per_second = {};
  StepOptions step;
  DataSet data;
  double training_samples = 0;  // in all, for the time of a whole training; 0: not asked for
  double start_seconds = 0;     // before the first step
  FailureOptions failures;
};

struct ScalingRow {
  int devices = 1;
  int64_t batch = 1;
  std::string plan;
  SimulatedStep step;
  Reading reading;          // in an epoch that is not the first
  double data_seconds = 0;  // that a step waits for them
  double step_seconds = 0;  // with that
  double samples_per_second = 0;
  double efficiency = 1;  // of a device, compared with one by itself (or with the first row)
  JobTime training;
  double device_hours() const { return training.seconds * devices / 3600; }
};

// Throws a memory Error when the model does not fit.
ScalingRow simulate_on(const Scenario& scenario, int devices);
// One row for each, with their efficiency.
std::vector<ScalingRow> simulate_scaling(const Scenario& scenario, const std::vector<int>& devices);

// What a machine that is better by `share` in one respect would gain: the step, relative. Best
// first.
struct Gain {
  std::string knob, meaning;
  double step_seconds = 0;
  double gain = 0;  // of 0.05: the step takes 5 % less
};
std::vector<Gain> sensitivity(const Scenario& scenario, int devices, double share = 0.1);

}  // namespace renkei::sim
