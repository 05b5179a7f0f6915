#include <algorithm>

#include "schedule/generators.h"

namespace renkei::schedule {
namespace {

using plan::Shape;

bool completes_gradients(const Task& task, const Shape& shape) {
  return task.micro_batch == shape.micro_batches - 1 &&
         (task.kind == TaskKind::backward || task.kind == TaskKind::backward_weight);
}

// Loads, receives and sends beside what is computed.
TaskList with_neighbours(const TaskList& order, const Shape& shape,
                         const std::vector<bool>& loads) {
  TaskList tasks;
  for (const Task& task : order) {
    const int stage = task.stage, m = task.micro_batch;
    const bool forward = task.kind == TaskKind::forward;
    const bool gradient = task.kind == TaskKind::backward || task.kind == TaskKind::backward_input;
    const int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
    if (forward && loads[static_cast<size_t>(stage)]) tasks.push_back({TaskKind::load, m, stage});
    if ((forward || gradient) && from >= 0 && from < shape.stages)
      tasks.push_back({TaskKind::receive, m, stage, from});
    if (completes_gradients(task, shape)) tasks.push_back({TaskKind::begin_reduce, 0, stage});
    tasks.push_back(task);
    if ((forward || gradient) && to >= 0 && to < shape.stages)
      tasks.push_back({TaskKind::send, m, stage, to});
  }
  return tasks;
}

// One transfer is expected ahead of the work that needs it: while something is computed, the next
// message can arrive.
TaskList with_expectations(const TaskList& tasks) {
  TaskList result;
  auto next = tasks.begin();  // the first receive that is not expected yet
  bool expecting = false;
  const auto expect = [&] {
    if (expecting) return;
    next = std::find_if(next, tasks.end(),
                        [](const Task& task) { return task.kind == TaskKind::receive; });
    if (next == tasks.end()) return;
    Task task = *next++;
    task.kind = TaskKind::expect;
    result.push_back(task);
    expecting = true;
  };
  for (const Task& task : tasks) {
    if (is_compute(task.kind) || task.kind == TaskKind::receive) expect();
    if (task.kind == TaskKind::receive) expecting = false;
    result.push_back(task);
  }
  return result;
}

// Sets of parameters in the order in which their gradients are complete, tied ones last.
void add_update(TaskList& tasks, const TaskList& order, int group, const Shape& shape,
                const StepParts& parts) {
  std::vector<int> sets;
  for (const Task& task : order)
    if (completes_gradients(task, shape)) sets.push_back(task.stage);
  for (size_t t = 0; t < parts.tied.size(); ++t)
    if (std::ranges::any_of(parts.tied[t], [&](int s) { return shape.group_of(s) == group; }))
      sets.push_back(shape.stages + static_cast<int>(t));
  for (const int set : sets) {
    if (set >= shape.stages) tasks.push_back({TaskKind::begin_reduce, 0, set});
    tasks.push_back({TaskKind::reduce, 0, set});
  }
  if (parts.norm) tasks.push_back({TaskKind::norm});
  for (const int set : sets) tasks.push_back({TaskKind::update, 0, set});
  tasks.push_back({TaskKind::loss});
}

}  // namespace

Schedule with_transfers(const Schedule& compute, const Shape& shape, const StepParts& parts) {
  Schedule schedule;
  for (const TaskList& order : compute) {
    TaskList tasks = with_expectations(with_neighbours(order, shape, parts.loads));
    const bool trains = std::ranges::any_of(
        order, [&](const Task& task) { return completes_gradients(task, shape); });
    if (trains) add_update(tasks, order, static_cast<int>(schedule.size()), shape, parts);
    schedule.push_back(std::move(tasks));
  }
  return schedule;
}

}  // namespace renkei::schedule
