#include "job/session.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "capture/safetensors.h"
#include "comm/collectives/gather.h"
#include "run/make_model.h"
#include "run/process_memory.h"
#include "run/step_executor.h"
#include "staging/message_cache.h"

namespace renkei::job {
namespace {

using run::TrainJob;
using run::TrainOptions;

constexpr int kMostNotFinite = 50;           // steps that may be left out in a row
constexpr double kSecondsBetweenMemory = 1;  // asking for it takes a millisecond

int64_t total_steps(const TrainOptions& options, const data::Sampler& sampler) {
  return options.steps.value_or(options.epochs * sampler.steps_per_epoch());
}

// Tells communication from waiting, which takes the times of all ranks.
void separate_waiting(comm::Communicator& communicator, std::vector<timeline::StepTimes>& steps,
                      const comm::Call& call) {
  std::vector<double> least;
  for (const auto& step : steps) least.push_back(step[timeline::Category::communication]);
  communicator.allreduce(comm::Buffer(std::span(least)), comm::Reduction::min, call);
  timeline::split_waiting(steps, least);
}

}  // namespace

Session::Session(const TrainJob& job, const TrainOptions& options)
    : job_(job),
      options_(options),
      sampler_({.count = job.train_data.count(),
                .global_batch = job.plan.batch.global,
                .seed = options.seed,
                .shuffle = options.shuffle,
                .run = options.loader.run}),
      steps_(total_steps(options, sampler_)),
      recorder_(job.timeline) {
  comm::Transport& transport = job.communicator.transport();
  options_.steps = steps_;
  options_.loader.epochs = epochs();
  if (options_.loader.share_cache && transport.size() > 1) {
    peers_ = staging::make_message_cache(transport, options_.timeout_seconds);
    options_.loader.peers = peers_.get();
  }
  if (options.record_operations && job.timeline) operations_.emplace(recorder_);
  worker_ = std::make_unique<run::Worker>(job_, options_);
  device_.emplace(options_.device_memory, worker_->held(), transport.rank(),
                  transport.host(transport.rank()));
  job_.communicator.barrier(call("begin of training"));
  result_.parameters = job_.model.parameter_count();
  result_.steps = steps_;
  result_.epochs = epochs();
  memory_.training_begins();
}

Session::~Session() = default;

int64_t Session::epochs() const {
  return (steps_ + steps_per_epoch() - 1) / steps_per_epoch();
}

comm::Call Session::call(std::string_view operation) const {
  return {
      .operation = operation, .step = next_step_ - 1, .timeout_seconds = options_.timeout_seconds};
}

run::StepReport Session::step() {
  const int64_t step = next_step_, per_epoch = steps_per_epoch();
  const run::StepPosition position{step / per_epoch, step % per_epoch, step};
  const optim::RunLength run{
      .steps_per_epoch = per_epoch, .steps = steps_, .batch = job_.plan.batch.global};
  const double learning_rate = optim::learning_rate(options_.learning_rate, run, step);
  const int64_t samples = sampler_.batch(position.step_in_epoch).size();
  if (job_.timeline && now_seconds() > memory_asked_ + kSecondsBetweenMemory) {
    recorder_.set_memory(run::process_memory_bytes());
    memory_asked_ = now_seconds();
  }
  if (left_out_.contains(step)) worker_->leave_out_update();
  const double loss = device_->within([&] {
    return run::execute_step(*worker_, position,
                             {.learning_rate = learning_rate,
                              .samples = samples,
                              .emulated_task_seconds = options_.emulated_task_seconds,
                              .emulated_load_seconds = options_.emulated_load_seconds,
                              .emulated_stage_work = options_.emulated_stage_work,
                              .votes = std::exchange(mine_, {}),
                              .operations = operations_ ? &*operations_ : nullptr},
                             recorder_) /
           static_cast<double>(samples);
  });
  check_finite(loss, step);
  if (result_.samples == 0) result_.loss_first = loss;
  result_.loss_last = loss;
  result_.samples += samples;
  ++next_step_;
  if (options_.check_replicas_every > 0 && next_step_ % options_.check_replicas_every == 0)
    worker_->compare_replicas(call("comparison of the replicas"));
  return {.epoch = position.epoch,
          .epochs = epochs(),
          .step = step,
          .steps = steps_,
          .samples = samples,
          .loss = loss,
          .learning_rate = learning_rate,
          .seconds = recorder_.steps().back().seconds};
}

// Steps that are left out, by dynamic loss scaling or because it was asked for, are no failure,
// unless there is no end of them.
void Session::check_finite(double loss, int64_t step) {
  not_finite_ = std::isfinite(loss) ? 0 : not_finite_ + 1;
  const bool may_be = options_.update.loss_scale.dynamic ||
                      (options_.update.skip_not_finite && !options_.roll_back) ||
                      left_out_.contains(step);
  if (not_finite_ == 0 || (may_be && not_finite_ < kMostNotFinite)) return;
  comm::Transport& transport = job_.communicator.transport();
  std::string where;
  const run::Model& model = job_.model;
  for (size_t i = 0; i < model.training.state.size() && where.empty(); ++i) {
    const torch::Tensor& tensor = model.training.state[i];
    if (!model.is_trained(i) || !tensor.grad().defined()) continue;
    if (!torch::isfinite(tensor.grad()).all().item<bool>())
      where = model.training.program.state[i].name;
  }
  const auto of_ranks = comm::gather_texts(transport, where, call("search for what is not finite"));
  Error error(ErrorCode::check, fmt::format("the loss of step {} is {}", step, loss),
              "use a smaller learning rate, clip with optim.clip, look at the data, or leave such "
              "steps out with train.not_finite=skip");
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].empty() || error.rank) continue;
    error.rank = static_cast<int>(rank);
    error.host = transport.host(static_cast<int>(rank));
    error.message += fmt::format("; the first gradient that is not finite is that of '{}' on {}",
                                 of_ranks[rank], comm::name_of_rank(transport, *error.rank));
  }
  error.step = step;
  throw error;
}

bool Session::at_end_of_epoch() const {
  return next_step_ % steps_per_epoch() == 0 || next_step_ == steps_;
}

std::optional<run::Evaluation> Session::evaluate() {
  worker_->average_buffers(call("mean of the running statistics"));
  if (!job_.held_out) return {};
  const double begin = now_seconds();
  result_.evaluation = device_->within([&] { return worker_->evaluate(call("evaluation")); });
  recorder_.note({.name = "evaluate", .begin = begin, .end = now_seconds()});
  return result_.evaluation;
}

Session::Snapshot Session::save() {
  return {.next_step = next_step_, .rank = worker_->snapshot()};
}

void Session::restore(const Snapshot& snapshot) {
  worker_->restore(snapshot.rank, call("restoring"));
  next_step_ = snapshot.next_step;
}

checkpoint::Progress Session::progress() const {
  const int64_t per_epoch = steps_per_epoch();
  checkpoint::Progress progress{
      .step = next_step_,
      .steps = steps_,
      .epoch = next_step_ / per_epoch,
      .sample_in_epoch = sampler_.batch(next_step_ % per_epoch).begin,
      .batch = job_.plan.batch.global,
      .samples = job_.train_data.count(),
      .seed = options_.seed,
      .optimizer = std::string(optim::name_of(options_.update.optimizer.kind)),
      .loss_scale = worker_->loss_scale().scale(),
      .good_steps = worker_->loss_scale().good_steps(),
      .first_loss = result_.loss_first,
      .last_loss = result_.loss_last};
  if (result_.evaluation) {
    progress.metrics["loss"] = result_.evaluation->loss;
    if (result_.evaluation->accuracy) progress.metrics["accuracy"] = *result_.evaluation->accuracy;
  }
  return progress;
}

namespace {

// The first value of those parameters that a rank has.
void change_one(const run::Model& model, const std::function<void(torch::Tensor)>& change) {
  for (const torch::Tensor& tensor : model.trained())
    if (tensor.numel() > 0 && tensor.unsafeGetTensorImpl()->has_storage() && tensor.nbytes() > 0)
      return change(tensor.data().flatten()[0]);
}

}  // namespace

void Session::spoil() {
  change_one(job_.model,
             [](torch::Tensor value) { value.fill_(std::numeric_limits<float>::quiet_NaN()); });
}

void Session::drift() {
  change_one(job_.model, [](torch::Tensor value) { value.add_(1e-3); });
}

void Session::restore(checkpoint::Reader& reader) {
  const checkpoint::Progress then = reader.manifest().progress, now = progress();
  const auto must_be_same = [&](std::string_view what, const auto& before, const auto& here) {
    if (before != here)
      throw Error(ErrorCode::usage,
                  fmt::format("{} has a checkpoint of a training with {} {}, and this one has {}",
                              reader.directory().string(), what, before, here),
                  "go on with the settings that it had, or begin a new run with its weights in "
                  "model.weights");
  };
  must_be_same("a batch of", then.batch, now.batch);
  must_be_same("samples:", then.samples, now.samples);
  must_be_same("the seed", then.seed, now.seed);
  must_be_same("the optimizer", then.optimizer, now.optimizer);
  worker_->restore(reader, call("loading of a checkpoint"));
  next_step_ = then.step;
  result_.loss_first = then.first_loss;
  result_.loss_last = then.last_loss;
  result_.samples = next_step_ / steps_per_epoch() * then.samples + then.sample_in_epoch;
}

run::TrainResult Session::result() {
  run::TrainResult result = result_;
  result.step_times = recorder_.steps();
  separate_waiting(job_.communicator, result.step_times, call("exchange of step times"));
  result.memory = run::exchange(memory_.breakdown(worker_->held()), job_.communicator,
                                call("exchange of memory use"));
  result.checksum = worker_->checksum(call("checksum of the parameters"));
  return result;
}

void Session::save_weights(const std::filesystem::path& file) {
  device_.reset();  // a tensor of another stage may be more than a device can hold
  capture::NamedTensors tensors;
  std::map<std::string, size_t> places;
  std::pair<size_t, torch::Tensor> here{SIZE_MAX, {}};  // the one that was fetched last
  const auto fetch = [&](size_t place) {
    if (here.first == place) return;
    here = {};  // one at a time
    here = {place, worker_->fetch(place, call("saving of the weights"))};
  };
  for (const run::NamedPlace& named : run::named_places(job_.model)) {
    places[named.name] = named.place;
    tensors[named.name] = {
        .dtype = named.dtype,
        .sizes = named.sizes,
        .read = [&, place = named.place](int64_t begin, std::span<char> into) {
          fetch(place);
          const torch::Tensor bytes = here.second.contiguous();
          std::memcpy(into.data(), static_cast<const char*>(bytes.data_ptr()) + begin, into.size());
        }};
  }
  if (job_.communicator.transport().rank() == 0)
    return capture::write_safetensors(file.string(), tensors, {{"format", "pt"}});
  // The others give what rank 0 asks for, in the same order.
  for (const std::string& name : capture::order_in_safetensors(tensors))
    if (tensors[name].bytes() > 0) fetch(places[name]);
}

torch::Tensor Session::fetch(size_t place) {
  return worker_->fetch(place, call("exchange of the state"));
}

void Session::collect() {
  device_.reset();  // the whole network may be more than a device can hold
  worker_->collect(call("collection of the parameters"));
}

void Session::close() {
  device_.reset();
  worker_->close();
  worker_.reset();
  peers_.reset();
}

void train(Session& session, run::Observer& observer) {
  while (session.next_step() < session.steps()) {
    const run::StepReport report = session.step();
    observer.on_step(report);
    if (!session.at_end_of_epoch()) continue;
    if (const auto evaluation = session.evaluate())
      observer.on_evaluation(report.step, *evaluation);
  }
}

run::TrainResult train(const TrainJob& job, const TrainOptions& options, run::Observer& observer) {
  Session session(job, options);
  train(session, observer);
  run::TrainResult result = session.result();
  session.collect();
  session.close();
  return result;
}

}  // namespace renkei::job
