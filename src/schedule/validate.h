#pragma once

#include <string>

#include "schedule/schedule.h"

namespace renkei::schedule {

// What is wrong with a schedule, in words; nothing: empty. Checked are
//
//   each micro-batch passes each stage once, forward before backward, on the group of the stage
//   what a task uses is there: loaded, received, or computed before
//   sends and receives match, one to one and in the same order, and each receive is expected
//   no task waits for ever
//   each stage reduces and updates once, after its last backward
//   no stage has more than `most_in_flight[stage]` micro-batches in flight
std::vector<std::string> problems(const Schedule& schedule, const plan::Shape& shape,
                                  const std::vector<int>& most_in_flight);

}  // namespace renkei::schedule
