#include "run/step_executor.h"

#include <algorithm>
#include <chrono>
#include <thread>

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
    case TaskKind::expect:
    case TaskKind::begin_reduce:
    case TaskKind::reduce:
    case TaskKind::norm:
    case TaskKind::loss:
      return Category::communication;
    case TaskKind::receive:  // what this rank needs is not computed yet
      return Category::bubble;
    case TaskKind::update:
      return Category::update;
  }
  return Category::other;
}

// Of how many parts of equal length a task consists: backward has two.
int halves(TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
      return 1;
    case TaskKind::backward:
      return 2;
    default:
      return 0;
  }
}

double emulated_seconds(const Task& task, const StepOptions& options) {
  if (task.kind == TaskKind::load) return options.emulated_load_seconds;
  const auto stage = static_cast<size_t>(task.stage);
  const double work =
      stage < options.emulated_stage_work.size() ? options.emulated_stage_work[stage] : 1;
  return halves(task.kind) * work * options.emulated_task_seconds;
}

void sleep_until(double time) {
  const double left = time - now_seconds();
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
}

// What the reducer's threads did beside the tasks.
void record_buckets(Worker& worker, int64_t step, timeline::Recorder& recorder) {
  int bucket = 0;
  for (const ParameterUpdater* updater : worker.updaters()) {
    double reduced = 0;
    for (const auto& times : updater->bucket_times()) {
      reduced += times.end - times.begin;
      recorder.note({.name = "reduce and update",
                     .category = Category::communication,
                     .begin = times.begin,
                     .end = times.end,
                     .step = step,
                     .index = bucket++,
                     .lane = timeline::kCommunicationLane,
                     .bytes = times.bytes});
    }
    // The end of an update that did not fit behind backward was counted as reduction.
    const double update = updater->exposed_update_seconds();
    recorder.add(Category::communication, -update);
    recorder.add(Category::update, update);
    recorder.add_hidden_communication(std::max(0.0, reduced - updater->exposed_seconds()));
  }
}

}  // namespace

timeline::Event event_of(const Task& task, int64_t step) {
  return {.name = name_of(task.kind),
          .category = category_of(task.kind),
          .begin = now_seconds(),
          .step = step,
          .index = task.micro_batch,
          .stage = task.stage};
}

double execute_step(Worker& worker, const StepPosition& position, const StepOptions& options,
                    timeline::Recorder& recorder) {
  recorder.begin_step(now_seconds(), position.step, options.samples);
  worker.begin_step(position, options.learning_rate, options.votes);
  for (const Task& task : worker.tasks()) {
    timeline::Event event = event_of(task, position.step);
    recorder.enter(event);
    if (options.operations) options.operations->begin_task(event);
    worker.execute(task);
    if (options.operations) options.operations->end_task();
    if (const double least = emulated_seconds(task, options)) sleep_until(event.begin + least);
    if (task.kind == TaskKind::send || task.kind == TaskKind::receive) {
      event.peer = worker.moved().peer;
      event.peer_stage = task.peer;
      event.bytes = worker.moved().bytes;
    }
    event.end = now_seconds();
    recorder.add(event);
  }
  record_buckets(worker, position.step, recorder);
  recorder.end_step(now_seconds());
  return worker.loss();
}

}  // namespace renkei::run
