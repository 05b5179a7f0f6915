#include "schedule/accumulate.h"

namespace renkei::schedule {

std::vector<Task> accumulate(int micro_batches) {
  std::vector<Task> tasks;
  for (int m = 0; m < micro_batches; ++m)
    for (const TaskKind kind : {TaskKind::load, TaskKind::forward, TaskKind::backward})
      tasks.push_back({kind, m});
  tasks.push_back({TaskKind::reduce});
  tasks.push_back({TaskKind::update});
  return tasks;
}

}  // namespace renkei::schedule
