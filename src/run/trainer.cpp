#include "run/trainer.h"

#include "base/clock.h"
#include "data/sampler.h"
#include "run/data_parallel_worker.h"
#include "run/device_memory.h"
#include "run/memory_count.h"
#include "run/pipeline_worker.h"
#include "run/step_executor.h"
#include "stage/message_cache.h"

namespace renkei::run {
namespace {

// Tells communication from waiting, which takes the times of all ranks.
void separate_waiting(const TrainJob& job, std::vector<timeline::StepTimes>& steps,
                      const comm::Call& call) {
  std::vector<double> least;
  for (const auto& step : steps) least.push_back(step[timeline::Category::communication]);
  job.communicator.allreduce(comm::Buffer(std::span(least)), comm::Reduction::min, call);
  timeline::split_waiting(steps, least);
}

std::unique_ptr<Worker> make_worker(const TrainJob& job, const TrainOptions& options) {
  if (job.plan.stages > 1) return std::make_unique<PipelineWorker>(job, options);
  return std::make_unique<DataParallelWorker>(job, options);
}

}  // namespace

ExecutionContext make_context(const TrainOptions& options) {
  ExecutionContext context{.winograd = options.compute.winograd, .dense = options.compute.dense};
  context.sink.direct = options.compute.direct_gradients;
  context.batch_norm.mode = options.batch_norm;
  return context;
}

TrainResult train(const TrainJob& job, const TrainOptions& given, Observer& observer) {
  const auto call = [&](std::string_view operation, int64_t step = -1) {
    return comm::Call{
        .operation = operation, .step = step, .timeout_seconds = given.timeout_seconds};
  };
  const data::Sampler sampler({.count = job.train_data.count(),
                               .global_batch = job.plan.batch.global,
                               .seed = given.seed,
                               .run = given.loader.run});
  const int64_t per_epoch = sampler.steps_per_epoch();
  const int64_t steps = given.steps.value_or(given.epochs * per_epoch);
  TrainResult result{.parameters = job.model.parameter_count(),
                     .steps = steps,
                     .epochs = (steps + per_epoch - 1) / per_epoch};
  TrainOptions options = given;
  options.steps = steps;
  options.loader.epochs = result.epochs;

  std::unique_ptr<data::PeerCache> peers;
  if (options.loader.share_cache && job.communicator.transport().size() > 1) {
    peers = stage::make_message_cache(job.communicator.transport(), options.timeout_seconds);
    options.loader.peers = peers.get();
  }

  MemoryCount memory;
  const std::unique_ptr<Worker> worker = make_worker(job, options);
  timeline::Recorder recorder(options.keep_events);
  const auto tasks = schedule::make_schedule(job.plan, job.communicator.transport().rank());
  const optim::RunLength run{
      .steps_per_epoch = per_epoch, .steps = steps, .batch = job.plan.batch.global};
  const comm::Transport& transport = job.communicator.transport();
  std::optional<DeviceMemory> device;
  device.emplace(options.device_memory, worker->held(), transport.rank(),
                 transport.host(transport.rank()));
  job.communicator.barrier(call("begin of training"));
  result.origin = now_seconds();
  memory.training_begins();
  for (int64_t step = 0; step < steps; ++step) {
    const StepPosition position{step / per_epoch, step % per_epoch, step};
    const double learning_rate = optim::learning_rate(options.learning_rate, run, step);
    const int64_t samples = sampler.batch(position.step_in_epoch).size();
    const double loss = device->within([&] {
      const StepOptions step_options{learning_rate, options.emulated_task_seconds};
      return execute_step(tasks, *worker, position, step_options, recorder) /
             static_cast<double>(samples);
    });
    if (step == 0) result.loss_first = loss;
    result.loss_last = loss;
    result.samples += samples;
    observer.on_step({.epoch = position.epoch,
                      .epochs = result.epochs,
                      .step = step,
                      .steps = steps,
                      .samples = samples,
                      .loss = loss,
                      .learning_rate = learning_rate,
                      .seconds = recorder.steps().back().seconds});
    if ((step + 1) % per_epoch != 0 && step + 1 != steps) continue;
    worker->average_buffers(call("mean of the running statistics", step));
    if (!job.held_out) continue;
    result.evaluation = device->within([&] { return worker->evaluate(call("evaluation", step)); });
    observer.on_evaluation(step, *result.evaluation);
  }
  separate_waiting(job, recorder.steps(), call("exchange of step times"));
  result.step_times = recorder.steps();
  result.events = recorder.events();
  result.memory =
      exchange(memory.breakdown(worker->held()), job.communicator, call("exchange of memory use"));
  device.reset();  // the whole network may be more than a device can hold
  result.checksum = worker->collect_parameters(call("collection of the parameters"));
  return result;
}

}  // namespace renkei::run
