#include "run/data_parallel_worker.h"

#include <fmt/format.h>

#include "base/error.h"
#include "run/buffers.h"
#include "run/evaluate.h"
#include "run/memory.h"

namespace renkei::run {

using schedule::Task;
using schedule::TaskKind;

namespace {

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

}  // namespace

DataParallelWorker::DataParallelWorker(const TrainJob& job, const TrainOptions& options)
    : job_(job),
      options_(options),
      context_(make_context(options)),
      executor_(job.model.training.program, whole(job.model.training.program)),
      state_(tensors_at(job.model.training.state, executor_.state())) {
  const comm::Transport& transport = job.communicator.transport();
  take_initial_state();
  const data::Sampler sampler({.count = job.train_data.count(),
                               .global_batch = job.plan.batch.global,
                               .ranks = transport.size(),
                               .seed = options.seed,
                               .run = options.loader.run});
  options_.loader.rank = transport.rank();
  loader_ = std::make_unique<BatchLoader>(job.train_data, sampler, options_.loader);

  UpdateOptions update = options.update;
  if (options.batch_norm == BatchNormMode::synchronised) {
    check_synchronised_batches(sampler, options.steps.value_or(sampler.steps_per_epoch()));
    // Its exchanges come in the middle of backward, where the reducer's thread would be in the way.
    update.overlap = false;
    context_.batch_norm.sum_over_ranks = [this](std::span<double> sums) {
      job_.communicator.allreduce(comm::Buffer(sums), comm::Reduction::sum,
                                  call("statistics of batch normalisation"));
    };
  }
  updater_ = std::make_unique<ParameterUpdater>(
      *parameters_, values_are_shared_ ? Division::host : Division::none, job.communicator, update);
}

comm::Call DataParallelWorker::call(std::string_view operation) const {
  return {
      .operation = operation, .step = position_.step, .timeout_seconds = options_.timeout_seconds};
}

// The flat parameters of this rank, with the values of rank 0. The ranks of a host that can share
// memory share the values.
void DataParallelWorker::take_initial_state() {
  comm::Communicator& communicator = job_.communicator;
  // Parameters first travel as they are in the network: ranks that share memory would get in each
  // other's way.
  broadcast_state(job_.model.training.state, communicator, call("broadcast of the initial state"));

  const auto as_floats = [](const comm::Buffer& buffer) {
    return reinterpret_cast<float*>(buffer.data);
  };
  FlatMemory memory;
  memory.gradients = [&](size_t count) {
    return as_floats(communicator.allocate(count, comm::DType::f32));
  };
  values_are_shared_ = communicator.local_size() > 1;
  if (values_are_shared_) {
    memory.values = [&](size_t count) {
      return as_floats(*communicator.allocate_once(count, comm::DType::f32));
    };
    memory.fill_values = communicator.local_rank() == 0;
  }
  parameters_ = std::make_unique<FlatParameters>(job_.model.trained(), context_.sink, memory);
  for (const torch::Tensor& parameter : job_.model.trained_by_autograd())
    context_.sink.remove(parameter);
  release_unused_memory();  // where the parameters were before
  communicator.local_barrier(call("begin of training"));
}

void DataParallelWorker::begin_step(const StepPosition& position, double learning_rate) {
  position_ = position;
  learning_rate_ = learning_rate;
  global_samples_ = loader_->global_samples(position.step_in_epoch);
  loss_sum_ = 0;
  context_.sink.begin_step();
  parameters_->begin_step();
}

void DataParallelWorker::execute(const Task& task) {
  switch (task.kind) {
    case TaskKind::load:
      batch_ = loader_->load(position_.epoch, position_.step_in_epoch, task.micro_batch,
                             static_cast<int>(job_.plan.batch.accumulation));
      return;
    case TaskKind::forward:
      return forward(task);
    case TaskKind::backward:
      return backward(task);
    case TaskKind::reduce:
      return updater_->finish_reduction();
    case TaskKind::update:
      return updater_->finish_update();
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::send:
    case TaskKind::receive:
      throw Error(ErrorCode::bug, fmt::format("a data-parallel step can't do the task {}",
                                              schedule::name_of(task.kind)));
  }
}

void DataParallelWorker::forward(const Task& task) {
  // At the end of an epoch a rank may be left without samples; it still takes part.
  if (batch_.samples == 0) return;
  context_.random = {
      .seed = options_.seed,
      .step = position_.step,
      .micro_batch =
          job_.communicator.transport().rank() * job_.plan.batch.accumulation + task.micro_batch};
  const program::Program& program = job_.model.training.program;
  const torch::Tensor sum =
      executor_
          .run(batch_inputs(program, executor_.inputs(), batch_), state_, batch_.samples, context_)
          .at(0);
  loss_sum_ += sum.item<double>();
  loss_ = sum * (updater_->loss_scale() / static_cast<double>(global_samples_));
}

void DataParallelWorker::backward(const Task& task) {
  if (task.micro_batch + 1 == job_.plan.batch.accumulation)
    updater_->start(position_.step, {.number = position_.step + 1,
                                     .epoch = static_cast<double>(position_.epoch) +
                                              static_cast<double>(position_.step_in_epoch) /
                                                  static_cast<double>(loader_->steps_per_epoch()),
                                     .learning_rate = learning_rate_});
  if (batch_.samples == 0) return;
  loss_.backward();
  loss_.reset();
}

double DataParallelWorker::end_step() {
  job_.communicator.allreduce(comm::Buffer(std::span(&loss_sum_, 1)), comm::Reduction::sum,
                              call("allreduce of the loss"));
  return loss_sum_;
}

void DataParallelWorker::average_buffers(const comm::Call& call) {
  run::average_buffers(job_.model.buffers(), job_.communicator, call);
}

Evaluation DataParallelWorker::evaluate(const comm::Call& call) {
  return run::evaluate(job_.model.evaluation_or_throw(), context_, *job_.held_out,
                       job_.communicator, std::max<int64_t>(job_.plan.batch.micro, 64),
                       options_.loader, call);
}

std::string DataParallelWorker::collect_parameters(const comm::Call&) {
  return checksum_of(job_.model.trained());
}

Worker::Held DataParallelWorker::held() const {
  const auto bytes = static_cast<int64_t>(parameters_->value_span().size_bytes());
  const int sharers = values_are_shared_ ? job_.communicator.local_size() : 1;
  return {.parameters = bytes,
          .sharers = sharers,
          .gradients = bytes,
          .optimizer = static_cast<int64_t>(updater_->state_bytes()),
          .in_tensors = sharers == 1};
}

}  // namespace renkei::run
