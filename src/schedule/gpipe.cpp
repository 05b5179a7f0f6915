#include "schedule/generators.h"

namespace renkei::schedule {

Schedule gpipe(const plan::Shape& shape) {
  Schedule schedule(static_cast<size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage)
    for (const TaskKind kind : {TaskKind::forward, TaskKind::backward})
      for (int m = 0; m < shape.micro_batches; ++m)
        schedule[static_cast<size_t>(stage)].push_back({kind, m, stage});
  return schedule;
}

}  // namespace renkei::schedule
