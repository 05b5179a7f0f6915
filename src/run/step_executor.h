// Does the tasks of a schedule, for real, on this rank, and records how long each took.
#pragma once

#include <vector>

#include "run/worker.h"
#include "schedule/schedule.h"
#include "timeline/recorder.h"

namespace renkei::run {

// One step. Returns the sum of the losses of the batch.
double execute_step(const schedule::TaskList& tasks, Worker& worker, const StepPosition& position,
                    double learning_rate, timeline::Recorder& recorder);

}  // namespace renkei::run
