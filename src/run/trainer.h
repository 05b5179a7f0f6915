// The training loop, in eight steps as MN-1's authors count them:
//
//   1 shuffle   2 batch   3 forward   4 loss   5 gradients   (allreduce)   6 update
//   7 next batch   8 next epoch
//
// 1, 7 and 8 are here; 2 to 6 are the tasks of the schedule, done by the step executor.
#pragma once

#include <optional>

#include "base/settings.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "data/loader/loader.h"
#include "optim/learning_rate.h"
#include "plan/plan.h"
#include "run/batch_norm_policy.h"
#include "run/compute_options.h"
#include "run/execution_context.h"
#include "run/model.h"
#include "run/parameter_updater.h"
#include "run/result.h"

namespace renkei::run {

struct TrainOptions {
  int64_t epochs = 1;
  std::optional<int64_t> steps;  // overrides the epochs
  uint64_t seed = 1;
  optim::ScheduleOptions learning_rate;
  UpdateOptions update;
  BatchNormMode batch_norm = BatchNormMode::rank;
  ComputeOptions compute;
  data::LoaderOptions loader;  // but for rank and epochs
  int64_t device_memory = 0;   // bytes that a rank may hold in training; 0: no limit
  double timeout_seconds = 300;
  bool keep_events = false;  // of the timeline
  // Forwards, and each half of a backward, are stretched to this; 0: they take their time.
  double emulated_task_seconds = 0;
};

TrainOptions train_options(const Settings& settings);
plan::BatchRequest batch_request(const Settings& settings);

struct TrainJob {
  Model& model;
  const data::Dataset& train_data;
  const data::Dataset* held_out;  // null: no evaluation
  comm::Communicator& communicator;
  plan::Plan plan;
};

// What the operations of a rank begin with.
ExecutionContext make_context(const TrainOptions& options);

// Called by all ranks. Before the first step all of them have the parameters of rank 0.
TrainResult train(const TrainJob& job, const TrainOptions& options, Observer& observer);

}  // namespace renkei::run
