// How a network is trained, beside what it computes and who computes what.
#pragma once

#include <optional>

#include "base/settings.h"
#include "data/loader/loader.h"
#include "optim/learning_rate.h"
#include "plan/batch.h"
#include "run/batch_norm_policy.h"
#include "run/compute_options.h"
#include "run/parameter_updater.h"

namespace renkei::run {

struct TrainOptions {
  int64_t epochs = 1;
  std::optional<int64_t> steps;  // overrides the epochs
  uint64_t seed = 1;
  bool shuffle = true;  // false: samples come in the order of the data set
  optim::ScheduleOptions learning_rate;
  UpdateOptions update;
  BatchNormMode batch_norm = BatchNormMode::rank;
  ComputeOptions compute;
  bool roll_back =
      false;  // a loss that is not finite is an error, though such gradients are skipped
  int64_t check_replicas_every = 0;  // steps; 0: never
  data::LoaderOptions loader;        // but for rank and epochs
  int64_t device_memory = 0;         // bytes that a rank may hold in training; 0: no limit
  double timeout_seconds = 300;
  // Forwards, and each half of a backward, are stretched to this; 0: they take their time.
  double emulated_task_seconds = 0;
  std::vector<double> emulated_stage_work = {};  // factors of it by stage; empty: 1
  double emulated_load_seconds = 0;              // the same for a load
  bool record_operations = false;                // in the timeline, where there is one
};

TrainOptions train_options(const Settings& settings);
plan::BatchRequest batch_request(const Settings& settings);

}  // namespace renkei::run
