#include <algorithm>

#include "schedule/generators.h"

namespace renkei::schedule {

Schedule zero_bubble(const plan::Shape& shape) {
  const int most_in_flight = std::min(shape.stages, shape.micro_batches);
  Schedule schedule(static_cast<size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    TaskList& tasks = schedule[static_cast<size_t>(stage)];
    const int warm_up = std::min(shape.micro_batches, shape.stages - 1 - stage);
    int forward = 0, weight = 0;
    const auto add_forward = [&] { tasks.push_back({TaskKind::forward, forward++, stage}); };
    const auto add_weight = [&] { tasks.push_back({TaskKind::backward_weight, weight++, stage}); };
    while (forward < warm_up) add_forward();
    for (int m = 0; m < shape.micro_batches; ++m) {
      const bool steady = forward < shape.micro_batches;
      // Room for the next micro-batch is made at the last moment.
      if (steady && forward - weight == most_in_flight) add_weight();
      if (steady) add_forward();
      // While the pipeline drains, weights fill the time until the next gradient arrives.
      if (!steady && weight < m) add_weight();
      tasks.push_back({TaskKind::backward_input, m, stage});
    }
    while (weight < shape.micro_batches) add_weight();
  }
  return schedule;
}

}  // namespace renkei::schedule
