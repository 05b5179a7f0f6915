// Does the tasks of a schedule, for real, on this rank.
#pragma once

#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "model/network.h"
#include "run/batch_loader.h"
#include "run/flat_parameters.h"
#include "run/parameter_updater.h"
#include "schedule/schedule.h"
#include "timeline/recorder.h"

namespace renkei::run {

struct StepResult {
  double loss = 0;      // mean over the samples of the global batch
  int64_t samples = 0;  // of the global batch
};

class StepExecutor {
 public:
  struct Parts {
    model::Network& network;
    model::Objective objective;
    BatchLoader& loader;
    FlatParameters& parameters;
    ParameterUpdater& updater;
    comm::Communicator& communicator;
    timeline::Recorder& recorder;
    uint64_t seed;
    double timeout_seconds;
  };
  explicit StepExecutor(Parts parts) : parts_(parts) {}

  struct Position {
    int64_t epoch, step_in_epoch;  // which samples
    int64_t step;                  // counts on over all epochs
  };
  StepResult run(const std::vector<schedule::Task>& tasks, const Position& position,
                 double learning_rate);

 private:
  struct Step;
  void execute(const schedule::Task& task, Step& state);
  void seed_micro_batch(const schedule::Task& task, const Step& state);

  Parts parts_;
};

}  // namespace renkei::run
