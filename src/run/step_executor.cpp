#include "run/step_executor.h"

#include "base/clock.h"

namespace renkei::run {

using schedule::Task;
using schedule::TaskKind;
using timeline::Category;

namespace {

Category category_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::load:
      return Category::data;
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
      return Category::compute;
    case TaskKind::send:
    case TaskKind::reduce:
      return Category::communication;
    case TaskKind::receive:  // what this rank needs is not computed yet
      return Category::bubble;
    case TaskKind::update:
      return Category::update;
  }
  return Category::other;
}

}  // namespace

double execute_step(const schedule::TaskList& tasks, Worker& worker, const StepPosition& position,
                    double learning_rate, timeline::Recorder& recorder) {
  recorder.begin_step(now_seconds());
  worker.begin_step(position, learning_rate);
  for (const Task& task : tasks) {
    const double begin = now_seconds();
    worker.execute(task);
    recorder.add({.name = name_of(task.kind),
                  .category = category_of(task.kind),
                  .begin = begin,
                  .end = now_seconds(),
                  .step = position.step,
                  .index = task.micro_batch});
  }
  const double end_begins = now_seconds();
  const double loss = worker.end_step();
  recorder.add(Category::communication, now_seconds() - end_begins);
  int bucket = 0;
  for (const ParameterUpdater* updater : worker.updaters()) {
    for (const auto& times : updater->bucket_times())
      recorder.note({.name = "reduce and update",
                     .category = Category::communication,
                     .begin = times.begin,
                     .end = times.end,
                     .step = position.step,
                     .index = bucket++,
                     .lane = 1});
    // The end of an update that did not fit behind backward was counted as reduction.
    const double update = updater->exposed_update_seconds();
    recorder.add(Category::communication, -update);
    recorder.add(Category::update, update);
  }
  recorder.end_step(now_seconds());
  return loss;
}

}  // namespace renkei::run
