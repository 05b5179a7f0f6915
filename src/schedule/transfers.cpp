#include "schedule/generators.h"

namespace renkei::schedule {
namespace {

bool ends_stage(TaskKind kind) {
  return kind == TaskKind::backward || kind == TaskKind::backward_weight;
}

}  // namespace

Schedule with_transfers(const Schedule& compute, const plan::Shape& shape,
                        const std::vector<bool>& loads) {
  Schedule schedule;
  for (const TaskList& order : compute) {
    TaskList tasks, last;
    for (const Task& task : order) {
      const int stage = task.stage, m = task.micro_batch;
      const bool forward = task.kind == TaskKind::forward;
      const bool gradient =
          task.kind == TaskKind::backward || task.kind == TaskKind::backward_input;
      const int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
      if (forward && loads[static_cast<size_t>(stage)]) tasks.push_back({TaskKind::load, m, stage});
      if ((forward || gradient) && from >= 0 && from < shape.stages)
        tasks.push_back({TaskKind::receive, m, stage, from});
      tasks.push_back(task);
      if ((forward || gradient) && to >= 0 && to < shape.stages)
        tasks.push_back({TaskKind::send, m, stage, to});
      if (ends_stage(task.kind) && m == shape.micro_batches - 1) {
        last.push_back({TaskKind::reduce, 0, stage});
        last.push_back({TaskKind::update, 0, stage});
      }
    }
    tasks.insert(tasks.end(), last.begin(), last.end());
    schedule.push_back(std::move(tasks));
  }
  return schedule;
}

}  // namespace renkei::schedule
