// Does the tasks of a schedule, for real, on this rank.
#pragma once

#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "model/network.h"
#include "run/batch_loader.h"
#include "run/flat_parameters.h"
#include "run/gradient_reducer.h"
#include "run/sgd.h"
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
    Sgd& optimizer;
    GradientReducer& reducer;
    comm::Communicator& communicator;
    timeline::Recorder& recorder;
    double timeout_seconds;
  };
  explicit StepExecutor(Parts parts) : parts_(parts) {}

  // `epoch` and `step_in_epoch` say which samples, `step` counts on over all epochs.
  StepResult run(const std::vector<schedule::Task>& tasks, int64_t epoch, int64_t step_in_epoch,
                 int64_t step);

 private:
  struct Step;
  void execute(const schedule::Task& task, Step& state);

  Parts parts_;
};

}  // namespace renkei::run
