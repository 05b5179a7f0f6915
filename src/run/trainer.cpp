#include "run/trainer.h"

#include <algorithm>

#include "base/clock.h"
#include "compute/scratch.h"
#include "run/evaluate.h"
#include "run/memory.h"
#include "run/process_memory.h"
#include "run/step_executor.h"

namespace renkei::run {
namespace {

// The flat parameters of this rank, with the values of rank 0. The ranks of a host that can share
// memory share the values.
struct InitialState {
  std::unique_ptr<FlatParameters> parameters;
  bool values_are_shared;
};

InitialState make_initial_state(const TrainJob& job, const TrainOptions& options) {
  comm::Communicator& communicator = job.communicator;
  const auto call = [&](std::string_view operation) {
    return comm::Call{.operation = operation, .timeout_seconds = options.timeout_seconds};
  };
  // Parameters first travel as they are in the network: ranks that share memory would get in each
  // other's way.
  for (torch::Tensor& parameter : job.network.parameters())
    communicator.broadcast(comm::Buffer(std::span(parameter.data_ptr<float>(),
                                                  static_cast<size_t>(parameter.numel()))),
                           0, call("broadcast of the initial parameters"));
  for (torch::Tensor& buffer : job.network.buffers())
    communicator.broadcast(
        comm::Buffer(std::span(static_cast<std::byte*>(buffer.data_ptr()), buffer.nbytes())), 0,
        call("broadcast of the initial buffers"));

  const auto as_floats = [](const comm::Buffer& buffer) {
    return reinterpret_cast<float*>(buffer.data);
  };
  FlatMemory memory;
  memory.gradients = [&](size_t count) {
    return as_floats(communicator.allocate(count, comm::DType::f32));
  };
  const bool shared = communicator.local_size() > 1;
  if (shared) {
    memory.values = [&](size_t count) {
      return as_floats(*communicator.allocate_once(count, comm::DType::f32));
    };
    memory.fill_values = communicator.local_rank() == 0;
  }
  InitialState state{std::make_unique<FlatParameters>(job.network, memory), shared};
  release_unused_memory();  // where the parameters were before
  communicator.local_barrier(call("begin of training"));
  return state;
}

// Running statistics differ from rank to rank; before they are used they become their mean.
void average_buffers(const TrainJob& job, const comm::Call& call) {
  const auto ranks = static_cast<float>(job.communicator.transport().size());
  if (ranks == 1) return;
  std::vector<float> flat;
  const auto for_floats = [&](auto action) {
    for (torch::Tensor& buffer : job.network.buffers())
      if (buffer.scalar_type() == torch::kFloat32 && buffer.is_contiguous())
        action(buffer.data_ptr<float>(), buffer.numel());
  };
  for_floats(
      [&](float* values, int64_t count) { flat.insert(flat.end(), values, values + count); });
  if (flat.empty()) return;
  job.communicator.allreduce(comm::Buffer(std::span(flat)), comm::Reduction::sum, call);
  const float* next = flat.data();
  for_floats([&](float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = *next++ / ranks;
  });
}

// Ranks that normalise together must all have samples in every step.
void check_synchronised_batches(const data::Sampler& sampler, int64_t steps) {
  for (const int64_t step : {int64_t{0}, sampler.steps_per_epoch() - 1})
    if (step < steps && sampler.batch(step).size() < sampler.options().ranks)
      throw Error(ErrorCode::usage,
                  fmt::format("synchronised batch normalisation needs samples on every rank, and "
                              "step {} of an epoch has {} for {} ranks",
                              step, sampler.batch(step).size(), sampler.options().ranks),
                  "use another batch, or --set train.batch_norm=rank");
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

// Counts the memory of this rank: constructed before training, asked after it.
class MemoryCount {
 public:
  MemoryCount() {
    const MemoryUse use = memory_use();
    libraries_ = process_memory_bytes() - use.held;
  }
  void training_begins() {
    reset_peak_memory();
    tensors_before_ = memory_use().live;
  }
  MemoryBreakdown breakdown(FlatParameters& parameters, int sharers, size_t optimizer) const {
    const MemoryUse use = memory_use();
    const auto bytes = static_cast<int64_t>(parameters.value_span().size_bytes());
    MemoryBreakdown memory{.parameters = bytes / sharers,
                           .gradients = bytes,
                           .optimizer = static_cast<int64_t>(optimizer),
                           .activations = use.peak - tensors_before_,
                           .peak = process_memory_bytes()};
    // Parameters that are not shared are tensors themselves.
    const int64_t other_tensors = use.held - memory.activations - (sharers == 1 ? bytes : 0);
    memory.other = libraries_ + std::max<int64_t>(0, other_tensors) +
                   static_cast<int64_t>(compute::scratch_bytes());
    return memory;
  }

 private:
  int64_t libraries_ = 0;  // and whatever else there was before training, but for tensors
  int64_t tensors_before_ = 0;
};

std::vector<MemoryBreakdown> exchange(const MemoryBreakdown& mine, comm::Communicator& communicator,
                                      const comm::Call& call) {
  const auto ranks = static_cast<size_t>(communicator.transport().size());
  std::vector<MemoryBreakdown> all(ranks);
  all[static_cast<size_t>(communicator.transport().rank())] = mine;
  static_assert(sizeof(MemoryBreakdown) == 6 * sizeof(int64_t));
  communicator.allreduce(comm::Buffer(std::span(reinterpret_cast<int64_t*>(all.data()), 6 * ranks)),
                         comm::Reduction::sum, call);
  return all;
}

}  // namespace

TrainResult train(const TrainJob& job, const TrainOptions& options, Observer& observer) {
  const comm::Transport& transport = job.communicator.transport();
  MemoryCount memory;
  const InitialState initial = make_initial_state(job, options);
  FlatParameters& parameters = *initial.parameters;

  const data::Sampler sampler({.count = job.train_data.count(),
                               .global_batch = job.plan.batch.global,
                               .ranks = transport.size(),
                               .seed = options.seed,
                               .run = options.loader.run});
  const int64_t per_epoch = sampler.steps_per_epoch();
  const int64_t steps = options.steps.value_or(options.epochs * per_epoch);
  data::LoaderOptions loader_options = options.loader;
  loader_options.rank = transport.rank();
  loader_options.epochs = (steps + per_epoch - 1) / per_epoch;
  BatchLoader loader(job.train_data, sampler, loader_options);

  UpdateOptions update = options.update;
  model::BatchNormPolicy& batch_norm = model::batch_norm_policy();
  batch_norm.mode = options.batch_norm;
  if (options.batch_norm == model::BatchNormMode::synchronised) {
    check_synchronised_batches(sampler, steps);
    // Its exchanges come in the middle of backward, where the reducer's thread would be in the way.
    update.overlap = false;
    batch_norm.sum_over_ranks = [&](std::span<double> sums) {
      job.communicator.allreduce(comm::Buffer(sums), comm::Reduction::sum,
                                 {.operation = "statistics of batch normalisation",
                                  .timeout_seconds = options.timeout_seconds});
    };
  }
  ParameterUpdater updater(parameters, initial.values_are_shared, job.communicator, update);
  timeline::Recorder recorder(options.keep_events);
  StepExecutor executor({.network = job.network,
                         .objective = job.objective,
                         .loader = loader,
                         .parameters = parameters,
                         .updater = updater,
                         .communicator = job.communicator,
                         .recorder = recorder,
                         .seed = options.seed,
                         .timeout_seconds = options.timeout_seconds});
  const auto tasks = schedule::make_schedule(job.plan, transport.rank());
  const optim::RunLength run{
      .steps_per_epoch = per_epoch, .steps = steps, .batch = job.plan.batch.global};
  TrainResult result{.parameters = model::count_parameters(job.network),
                     .steps = steps,
                     .epochs = (steps + per_epoch - 1) / per_epoch};
  job.communicator.barrier(
      {.operation = "begin of training", .timeout_seconds = options.timeout_seconds});
  result.origin = now_seconds();
  memory.training_begins();
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t epoch = step / per_epoch;
    const double learning_rate = optim::learning_rate(options.learning_rate, run, step);
    const StepResult done = executor.run(tasks, {epoch, step % per_epoch, step}, learning_rate);
    if (step == 0) result.loss_first = done.loss;
    result.loss_last = done.loss;
    result.samples += done.samples;
    observer.on_step({.epoch = epoch,
                      .epochs = result.epochs,
                      .step = step,
                      .steps = steps,
                      .samples = done.samples,
                      .loss = done.loss,
                      .learning_rate = learning_rate,
                      .seconds = recorder.steps().back().seconds});
    const bool epoch_ends = (step + 1) % per_epoch == 0 || step + 1 == steps;
    if (epoch_ends)
      average_buffers(job, {.operation = "mean of the running statistics",
                            .step = step,
                            .timeout_seconds = options.timeout_seconds});
    if (epoch_ends && job.held_out) {
      result.evaluation = evaluate(
          job.network, job.objective, *job.held_out, job.communicator,
          std::max<int64_t>(job.plan.batch.micro, 64), loader_options,
          {.operation = "evaluation", .step = step, .timeout_seconds = options.timeout_seconds});
      observer.on_evaluation(step, *result.evaluation);
    }
  }
  result.checksum = parameters.checksum();
  separate_waiting(job, recorder.steps(), options);
  result.step_times = recorder.steps();
  result.events = recorder.events();
  result.memory = exchange(
      memory.breakdown(parameters, initial.values_are_shared ? job.communicator.local_size() : 1,
                       updater.state_bytes()),
      job.communicator,
      {.operation = "exchange of memory use", .timeout_seconds = options.timeout_seconds});
  return result;
}

}  // namespace renkei::run
