#include <algorithm>

#include "schedule/generators.h"

namespace renkei::schedule {

Schedule one_f_one_b(const plan::Shape& shape) {
  Schedule schedule(static_cast<size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    TaskList& tasks = schedule[static_cast<size_t>(stage)];
    const int warm_up = std::min(shape.micro_batches, shape.stages - 1 - stage);
    int forward = 0;
    const auto add_forward = [&] { tasks.push_back({TaskKind::forward, forward++, stage}); };
    while (forward < warm_up) add_forward();
    for (int m = 0; m < shape.micro_batches; ++m) {
      if (forward < shape.micro_batches) add_forward();
      tasks.push_back({TaskKind::backward, m, stage});
    }
  }
  return schedule;
}

}  // namespace renkei::schedule
