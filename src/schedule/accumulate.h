#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace renkei::schedule {

// Data parallel with m micro-batches: every rank does the same, one micro-batch after the other,
// so that only one micro-batch's activations are alive.
//
//   load 0 | forward 0 | backward 0 | load 1 | forward 1 | backward 1 | … | reduce | update
std::vector<Task> accumulate(int micro_batches);

}  // namespace renkei::schedule
