#include "run/step_executor.h"

#include <array>

#include "base/clock.h"
#include "base/error.h"
#include "base/philox.h"
#include "run/loss.h"

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
    case TaskKind::receive:
    case TaskKind::reduce:
      return Category::communication;
    case TaskKind::update:
      return Category::update;
  }
  return Category::other;
}

}  // namespace

// What the tasks of a step hand to each other.
struct StepExecutor::Step {
  Position position;
  double learning_rate;
  int64_t global_samples;
  int micro_batches = 0;
  Batch batch;          // of the micro-batch under way
  torch::Tensor loss;   // its loss, scaled to the global batch
  double loss_sum = 0;  // over this rank's samples, then over all ranks
};

StepResult StepExecutor::run(const std::vector<Task>& tasks, const Position& position,
                             double learning_rate) {
  Step state{.position = position,
             .learning_rate = learning_rate,
             .global_samples = parts_.loader.global_samples(position.step_in_epoch)};
  for (const Task& task : tasks)
    state.micro_batches = std::max(state.micro_batches, task.micro_batch + 1);

  parts_.recorder.begin_step(now_seconds());
  parts_.parameters.begin_step();
  for (const Task& task : tasks) {
    const double begin = now_seconds();
    execute(task, state);
    parts_.recorder.add({.name = name_of(task.kind),
                         .category = category_of(task.kind),
                         .begin = begin,
                         .end = now_seconds(),
                         .step = position.step,
                         .index = task.micro_batch});
  }
  int bucket = 0;
  for (const auto& times : parts_.updater.bucket_times())
    parts_.recorder.note({.name = "reduce and update",
                          .category = Category::communication,
                          .begin = times.begin,
                          .end = times.end,
                          .step = position.step,
                          .index = bucket++,
                          .lane = 1});
  // The end of an update that did not fit behind backward was counted as reduction.
  const double update = parts_.updater.exposed_update_seconds();
  parts_.recorder.add(Category::communication, -update);
  parts_.recorder.add(Category::update, update);
  parts_.recorder.end_step(now_seconds());
  return {state.loss_sum / static_cast<double>(state.global_samples), state.global_samples};
}

void StepExecutor::execute(const Task& task, Step& state) {
  switch (task.kind) {
    case TaskKind::load:
      state.batch = parts_.loader.load(state.position.epoch, state.position.step_in_epoch,
                                       task.micro_batch, state.micro_batches);
      return;
    case TaskKind::forward: {
      // At the end of an epoch a rank may be left without samples; it still takes part.
      if (state.batch.samples == 0) return;
      seed_micro_batch(task, state);
      const torch::Tensor sum =
          summed_loss(parts_.objective, parts_.network, state.batch.input, state.batch.target);
      state.loss_sum += sum.item<double>();
      state.loss = sum * (parts_.updater.loss_scale() / static_cast<double>(state.global_samples));
      return;
    }
    case TaskKind::backward:
      if (task.micro_batch + 1 == state.micro_batches)
        parts_.updater.start(state.position.step,
                             {.number = state.position.step + 1,
                              .epoch = static_cast<double>(state.position.epoch) +
                                       static_cast<double>(state.position.step_in_epoch) /
                                           static_cast<double>(parts_.loader.steps_per_epoch()),
                              .learning_rate = state.learning_rate});
      if (state.batch.samples == 0) return;
      state.loss.backward();
      state.loss.reset();
      return;
    case TaskKind::reduce:
      parts_.updater.finish_reduction();
      parts_.communicator.allreduce(comm::Buffer(std::span(&state.loss_sum, 1)),
                                    comm::Reduction::sum,
                                    {.operation = "allreduce of the loss",
                                     .step = state.position.step,
                                     .timeout_seconds = parts_.timeout_seconds});
      return;
    case TaskKind::update:
      parts_.updater.finish_update();
      return;
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::send:
    case TaskKind::receive:
      throw Error(ErrorCode::bug, fmt::format("a data-parallel step can't do the task {}",
                                              schedule::name_of(task.kind)));
  }
}

// What a network draws itself, as dropout does, depends on the seed, the step and which of the
// global batch's micro-batches it is: not on the rank that computes it.
void StepExecutor::seed_micro_batch(const Task& task, const Step& state) {
  const int64_t micro_batch =
      parts_.communicator.transport().rank() * int64_t{state.micro_batches} + task.micro_batch;
  Random random(parts_.seed, RandomUse::dropout, static_cast<uint32_t>(micro_batch),
                static_cast<uint64_t>(state.position.step));
  torch::manual_seed(uint64_t{random()} << 32 | random());
}

}  // namespace renkei::run
