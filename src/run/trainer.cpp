#include "run/trainer.h"

#include <algorithm>

#include "run/evaluate.h"
#include "run/step_executor.h"

namespace renkei::run {
namespace {

void broadcast_initial_state(const TrainJob& job, FlatParameters& parameters,
                             const TrainOptions& options) {
  job.communicator.broadcast(comm::Buffer(parameters.value_span()), 0,
                             {.operation = "broadcast of the initial parameters",
                              .timeout_seconds = options.timeout_seconds});
  for (torch::Tensor& buffer : job.network.buffers()) {
    auto* bytes = static_cast<std::byte*>(buffer.data_ptr());
    job.communicator.broadcast(comm::Buffer(std::span(bytes, buffer.nbytes())), 0,
                               {.operation = "broadcast of the initial buffers",
                                .timeout_seconds = options.timeout_seconds});
  }
}

// Tells communication from waiting, which takes the times of all ranks.
void separate_waiting(const TrainJob& job, std::vector<timeline::StepTimes>& steps,
                      const TrainOptions& options) {
  std::vector<double> least;
  for (const auto& step : steps) least.push_back(step[timeline::Category::communication]);
  job.communicator.allreduce(
      comm::Buffer(std::span(least)), comm::Reduction::min,
      {.operation = "exchange of step times", .timeout_seconds = options.timeout_seconds});
  timeline::split_waiting(steps, least);
}

}  // namespace

TrainResult train(const TrainJob& job, const TrainOptions& options, Observer& observer) {
  const comm::Transport& transport = job.communicator.transport();
  FlatParameters parameters(job.network, [&](size_t count) {
    return reinterpret_cast<float*>(job.communicator.allocate(count, comm::DType::f32).data);
  });
  broadcast_initial_state(job, parameters, options);

  GradientReducer reducer(parameters, job.communicator, options.reducer);
  Sgd optimizer(options.sgd);
  BatchLoader loader(job.train_data,
                     data::Sampler({.count = job.train_data.count(),
                                    .global_batch = job.plan.batch.global,
                                    .ranks = transport.size(),
                                    .seed = options.seed}),
                     transport.rank());
  timeline::Recorder recorder;
  StepExecutor executor({.network = job.network,
                         .objective = job.objective,
                         .loader = loader,
                         .parameters = parameters,
                         .optimizer = optimizer,
                         .reducer = reducer,
                         .communicator = job.communicator,
                         .recorder = recorder,
                         .timeout_seconds = options.timeout_seconds});
  const auto tasks = schedule::make_schedule(job.plan, transport.rank());

  const int64_t per_epoch = loader.steps_per_epoch();
  const int64_t steps = options.steps.value_or(options.epochs * per_epoch);
  TrainResult result{.parameters = model::count_parameters(job.network),
                     .steps = steps,
                     .epochs = (steps + per_epoch - 1) / per_epoch};
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t epoch = step / per_epoch;
    const StepResult done = executor.run(tasks, epoch, step % per_epoch, step);
    if (step == 0) result.loss_first = done.loss;
    result.loss_last = done.loss;
    result.samples += done.samples;
    observer.on_step({.epoch = epoch,
                      .epochs = result.epochs,
                      .step = step,
                      .steps = steps,
                      .samples = done.samples,
                      .loss = done.loss,
                      .seconds = recorder.steps().back().seconds});
    const bool epoch_ends = (step + 1) % per_epoch == 0 || step + 1 == steps;
    if (epoch_ends && job.held_out) {
      result.evaluation = evaluate(
          job.network, job.objective, *job.held_out, job.communicator,
          std::max<int64_t>(job.plan.batch.micro, 64),
          {.operation = "evaluation", .step = step, .timeout_seconds = options.timeout_seconds});
      observer.on_evaluation(step, *result.evaluation);
    }
  }
  result.checksum = parameters.checksum();
  separate_waiting(job, recorder.steps(), options);
  result.step_times = recorder.steps();
  return result;
}

}  // namespace renkei::run
