// Does the tasks of a schedule, for real, on this rank, and records how long each took.
#pragma once

#include <span>
#include <vector>

#include "run/op_recorder.h"
#include "run/worker.h"
#include "schedule/schedule.h"
#include "timeline/recorder.h"

namespace renkei::run {

// What is recorded of a task that begins now.
timeline::Event event_of(const schedule::Task& task, int64_t step);

// One step. Returns the sum of the losses of the batch.
struct StepOptions {
  double learning_rate = 0;
  int64_t samples = 0;  // of all ranks
  // As in TrainOptions.
  double emulated_task_seconds = 0, emulated_load_seconds = 0;
  std::span<const double> emulated_stage_work = {};
  Votes votes = {};                  // of this rank
  OpRecorder* operations = nullptr;  // null: they are not recorded
};
double execute_step(Worker& worker, const StepPosition& position, const StepOptions& options,
                    timeline::Recorder& recorder);

}  // namespace renkei::run
