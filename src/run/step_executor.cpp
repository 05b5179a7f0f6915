#include "run/step_executor.h"

#include <array>

#include "base/clock.h"
#include "base/error.h"
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
  int64_t epoch, step_in_epoch, step;
  int64_t global_samples;
  int micro_batches = 0;
  Batch batch;          // of the micro-batch under way
  torch::Tensor loss;   // its loss, scaled to the global batch
  double loss_sum = 0;  // over this rank's samples, then over all ranks
};

StepResult StepExecutor::run(const std::vector<Task>& tasks, int64_t epoch, int64_t step_in_epoch,
                             int64_t step) {
  Step state{.epoch = epoch,
             .step_in_epoch = step_in_epoch,
             .step = step,
             .global_samples = parts_.loader.global_samples(step_in_epoch)};
  for (const Task& task : tasks)
    state.micro_batches = std::max(state.micro_batches, task.micro_batch + 1);

  parts_.recorder.begin_step(now_seconds());
  parts_.parameters.zero_gradients();
  for (const Task& task : tasks) {
    const double begin = now_seconds();
    execute(task, state);
    parts_.recorder.add(category_of(task.kind), now_seconds() - begin);
  }
  parts_.recorder.end_step(now_seconds());
  return {state.loss_sum / static_cast<double>(state.global_samples), state.global_samples};
}

void StepExecutor::execute(const Task& task, Step& state) {
  switch (task.kind) {
    case TaskKind::load:
      state.batch = parts_.loader.load(state.epoch, state.step_in_epoch, task.micro_batch,
                                       state.micro_batches);
      return;
    case TaskKind::forward: {
      // At the end of an epoch a rank may be left without samples; it still takes part.
      if (state.batch.samples == 0) return;
      const torch::Tensor output = parts_.network.forward(state.batch.input);
      const torch::Tensor sum = summed_loss(parts_.objective, output, state.batch.target);
      state.loss_sum += sum.item<double>();
      state.loss = sum / static_cast<double>(state.global_samples);
      return;
    }
    case TaskKind::backward:
      if (task.micro_batch + 1 == state.micro_batches) parts_.reducer.start(state.step);
      if (state.batch.samples == 0) return;
      state.loss.backward();
      state.loss.reset();
      return;
    case TaskKind::reduce:
      parts_.reducer.finish();
      parts_.communicator.allreduce(comm::Buffer(std::span(&state.loss_sum, 1)),
                                    comm::Reduction::sum,
                                    {.operation = "allreduce of the loss",
                                     .step = state.step,
                                     .timeout_seconds = parts_.timeout_seconds});
      return;
    case TaskKind::update:
      parts_.optimizer.update(parts_.parameters.values(), parts_.parameters.gradients());
      return;
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::send:
    case TaskKind::receive:
      throw Error(ErrorCode::bug, fmt::format("a data-parallel step can't do the task {}",
                                              schedule::name_of(task.kind)));
  }
}

}  // namespace renkei::run
