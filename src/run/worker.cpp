#include "run/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "comm/transport/tags.h"
#include "run/buffers.h"

namespace renkei::run {

using schedule::Task;
using schedule::TaskKind;

namespace {

// Autograd says that a gradient is complete at the end of each segment that uses the parameter. So
// where stages have several, the sum over the replicas begins after all of them. In two-part
// backward it is not autograd who says it.
bool reduces_late(const plan::Plan& plan, int set) {
  if (plan.shape().kind == plan::ScheduleKind::zero_bubble) return false;
  const auto in_segments = [](const plan::Stage& stage) { return stage.segments.size() > 1; };
  const auto& stages = plan.stage_list;
  const auto s = static_cast<size_t>(set);
  return s < stages.size() ? in_segments(stages[s]) : std::ranges::any_of(stages, in_segments);
}

}  // namespace

// --- a step ---

comm::Call Worker::call(std::string_view operation) const {
  return {
      .operation = operation, .step = position_.step, .timeout_seconds = options_.timeout_seconds};
}

Stage& Worker::stage(int number) {
  const auto found = std::ranges::find(phase_->stages, number, &Stage::number);
  if (found == phase_->stages.end())
    throw Error(ErrorCode::bug, fmt::format("stage {} is not on rank {}", number, world_.rank()));
  return *found;
}

std::vector<ParameterUpdater*> Worker::updaters() {
  std::vector<ParameterUpdater*> list;
  for (const auto& [set, shared] : parameters_)
    if (shared->updater()) list.push_back(shared->updater());
  return list;
}

void Worker::begin_step(const StepPosition& position, double learning_rate, const Votes& mine) {
  phase_ = training_.get();
  position_ = position;
  learning_rate_ = learning_rate;
  const Lanes& lanes = training_->lanes;
  global_samples_ = lanes.sampler().batch(position.step_in_epoch).size();
  loss_sum_ = 0;
  votes_ = mine;
  context_.sink.begin_step();
  for (const auto& [set, shared] : parameters_)
    if (shared->flat()) {
      // Who updates the parameters may have taken their gradients away.
      if (options_.update.only_reduce) shared->flat()->renew_gradients();
      shared->flat()->begin_step();
    }
  for (Stage& stage : training_->stages)
    for (int m = 0; m < lanes.micro_batches(); ++m) {
      MicroBatch& micro = stage.micro_batch(m);
      micro.samples = lanes.samples(position.step_in_epoch, m, stage.place().lanes);
      micro.random = {.seed = options_.seed,
                      .step = position.step,
                      .micro_batch = stage.place().replica * int64_t{lanes.micro_batches()} + m};
    }
}

void Worker::execute(const Task& task) {
  switch (task.kind) {
    case TaskKind::load:
      return load(task);
    case TaskKind::expect:
      return expect(task);
    case TaskKind::receive:
      return receive(task);
    case TaskKind::send:
      return send(task);
    case TaskKind::forward:
      return forward(task);
    case TaskKind::backward:
    case TaskKind::backward_input:
      return backward(task);
    case TaskKind::backward_weight:
      return backward_weight(task);
    case TaskKind::begin_reduce:
      if (!reduces_late(job_.plan, task.stage)) begin_reduce(task);
      return;
    case TaskKind::reduce:
      if (reduces_late(job_.plan, task.stage)) begin_reduce(task);
      if (ParameterUpdater* updater = parameters(task.stage).updater()) updater->finish_reduction();
      return;
    case TaskKind::norm:
      return take_norm();
    case TaskKind::update:
      if (ParameterUpdater* updater = parameters(task.stage).updater()) updater->finish_update();
      return;
    case TaskKind::loss:
      return sum_loss();
  }
}

// --- computing ---

void Worker::load(const Task& task) {
  Stage& here = stage(task.stage);
  here.micro_batch(task.micro_batch).batch = phase_->loader->load(
      position_.epoch, position_.step_in_epoch,
      phase_->lanes.slices(position_.step_in_epoch, task.micro_batch, here.place().lanes),
      here.fields());
}

// Batch normalisation exchanges among the replicas of the stage.
void Worker::compute_as(const Stage& stage) {
  if (const auto found = sum_statistics_.find(stage.number()); found != sum_statistics_.end())
    context_.batch_norm.sum_over_ranks = found->second;
}

void Worker::forward(const Task& task) {
  Stage& here = stage(task.stage);
  MicroBatch& micro = micro_batch(task);
  // At the end of an epoch a rank may be left without samples; it still takes part.
  if (micro.samples == 0) return;
  compute_as(here);
  here.forward(micro, phase_->mode, context_);
  if (!speaks()) return;
  if (phase_->mode == Stage::Mode::training) {
    loss_sum_ += here.output(micro, 0).value_or(0);
    return;
  }
  for (size_t i = 0; i < phase_->network.outputs().size(); ++i)
    evaluated_.at(i) += here.output(micro, i).value_or(0);
}

void Worker::backward(const Task& task) {
  MicroBatch& micro = micro_batch(task);
  if (micro.samples == 0) return;
  Stage& here = stage(task.stage);
  compute_as(here);
  here.backward(
      micro, gradient_factor_ * loss_scale_.scale() / static_cast<double>(global_samples_),
      task.kind == TaskKind::backward ? Stage::Part::whole : Stage::Part::inputs, context_);
}

void Worker::backward_weight(const Task& task) {
  const auto put_off = std::move(micro_batch(task).put_off);
  if (!put_off) return;
  ParameterUpdater* updater = parameters(task.stage).updater();
  const bool last = task.micro_batch + 1 == phase_->lanes.micro_batches();
  if (!last || !updater) return put_off->run();
  // What was not put off is complete already.
  updater->complete_all_but(*put_off);
  put_off->run([&](const torch::Tensor& parameter) {
    if (updater->has(parameter)) updater->complete(parameter);
  });
}

void Worker::begin_reduce(const Task& task) {
  ParameterUpdater* updater = parameters(task.stage).updater();
  if (!updater) return;
  const auto per_epoch = static_cast<double>(training_->lanes.sampler().steps_per_epoch());
  updater->start(position_.step, {.number = position_.step + 1,
                                  .epoch = static_cast<double>(position_.epoch) +
                                           static_cast<double>(position_.step_in_epoch) / per_epoch,
                                  .learning_rate = learning_rate_,
                                  .gradient_scale = 1 / loss_scale_.scale()});
}

// All ranks come to the same decision: the sum of the squares is exact.
void Worker::take_norm() {
  optim::SquareSum squares;
  for (const auto& [set, shared] : parameters_)
    if (shared->updater() &&
        (speaks() || sets_[static_cast<size_t>(set)].share != plan::Share::equal))
      squares += shared->updater()->squares();
  job_.communicator.allreduce(comm::Buffer(optim::as_integers(squares)), comm::Reduction::sum,
                              call("norm of the gradients"));
  std::optional<double> factor = 1.0;
  if (!loss_scale_.should_update(squares.finite()) ||
      (options_.update.skip_not_finite && !squares.finite()) || leave_out_)
    factor.reset();
  else if (options_.update.clip_norm)
    factor = optim::clip_factor(squares.norm(), *options_.update.clip_norm);
  for (ParameterUpdater* updater : updaters()) updater->decide(factor);
}

void Worker::sum_loss() {
  links_.outbox().wait(call("transfers between stages"));
  std::array<double, 4> sums{loss_sum_, votes_.stop, votes_.save, votes_.written};
  job_.communicator.allreduce(comm::Buffer(std::span<double>(sums)), comm::Reduction::sum,
                              call("allreduce of the loss"));
  loss_sum_ = sums[0];
  leave_out_ = false;
  gradient_factor_ = 1;
  votes_ = {.stop = sums[1], .save = sums[2], .written = sums[3]};
}

// --- between stages ---

StageLinks::End Worker::end_at(const Task& task) {
  return {.network = phase_->network,
          .lanes = phase_->lanes,
          .stage = task.stage,
          .mine = stage(task.stage).place().lanes,
          .step = position_.step_in_epoch,
          .micro_batch = task.micro_batch};
}

void Worker::send(const Task& task) {
  Stage& here = stage(task.stage);
  MicroBatch& micro = micro_batch(task);
  if (micro.samples == 0) return;
  if (task.peer < task.stage) {
    links_.send(end_at(task), task.peer, micro.input_gradients);
    micro.input_gradients.clear();
    return;
  }
  links_.send(end_at(task), task.peer, here.outgoing(micro));
  if (here.place().recompute) micro.made.clear();  // they will be made again
}

void Worker::expect(const Task& task) {
  expected_ = links_.post(end_at(task), task.peer);
}

void Worker::receive(const Task& task) {
  const bool forward = task.peer < task.stage;
  MicroBatch& micro = micro_batch(task);
  (forward ? micro.received : micro.gradients) =
      links_.finish(*std::exchange(expected_, {}),
                    call(forward ? "receive of activations" : "receive of gradients"));
}

// --- besides the steps ---

void Worker::average_buffers(const comm::Call& call) {
  for (const auto& [stage, buffers] : buffers_)
    run::average_buffers(buffers, parameters(stage).communicator(), call);
}

Evaluation Worker::evaluate(const comm::Call& call) {
  const Lanes& lanes = evaluation_->lanes;
  data::LoaderOptions loading = options_.loader;
  loading.epochs = 1;
  loading.peers = nullptr;  // they keep the samples of training
  const auto loader = make_loader(*evaluation_, *job_.held_out, loading);
  evaluation_->loader = loader.get();
  phase_ = evaluation_.get();
  evaluated_ = {};
  const StepPosition training = position_;
  for (int64_t step = 0; step < lanes.sampler().steps_per_epoch(); ++step) {
    position_ = {.epoch = 0, .step_in_epoch = step, .step = training.step};
    for (Stage& stage : evaluation_->stages)
      stage.micro_batch(0) = {.samples = lanes.samples(step, 0, stage.place().lanes)};
    for (const Task& task : evaluation_->tasks) execute(task);
  }
  for (Stage& stage : evaluation_->stages) stage.micro_batch(0) = {};
  loader->close();
  evaluation_->loader = nullptr;
  position_ = training;
  links_.outbox().wait(call);
  job_.communicator.allreduce(comm::Buffer(std::span<double>(evaluated_)), comm::Reduction::sum,
                              call);
  const int64_t count = job_.held_out->count();
  const auto samples = static_cast<double>(count);
  Evaluation result{.loss = evaluated_[0] / samples, .samples = count};
  if (evaluation_->network.outputs().size() > 1) result.accuracy = evaluated_[1] / samples;
  return result;
}

Worker::Snapshot Worker::snapshot() {
  Snapshot snapshot{.state = {}, .optimizer = {}, .loss_scale = loss_scale_};
  for (size_t i = 0; i < holders_.size(); ++i)
    if (std::ranges::binary_search(holders_[i], world_.rank()))
      snapshot.state[static_cast<int>(i)] = job_.model.training.state[i].detach().clone();
  for (const auto& [set, shared] : parameters_)
    if (shared->updater()) snapshot.optimizer[set] = shared->updater()->state();
  return snapshot;
}

void Worker::restore(const Snapshot& snapshot, const comm::Call& call) {
  const torch::NoGradGuard no_grad;
  // Ranks that have values in common write the same.
  for (const auto& [place, tensor] : snapshot.state)
    job_.model.training.state[static_cast<size_t>(place)].data().copy_(tensor);
  for (const auto& [set, state] : snapshot.optimizer) parameters(set).updater()->set_state(state);
  loss_scale_ = snapshot.loss_scale;
  job_.communicator.barrier(call);
}

std::string Worker::checksum(const comm::Call& call) {
  std::vector<uint64_t> sums;
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (!job_.model.is_trained(i)) continue;
    if (job_.model.slice(i).is_split()) {
      const torch::Tensor whole = fetch(i, call);
      sums.push_back(whole.defined() ? checksum_of(whole) : 0);
      continue;
    }
    const bool mine = speaks() && holders_[i].front() == world_.rank();
    sums.push_back(mine ? checksum_of(job_.model.training.state[i]) : 0);
  }
  const std::span integers(reinterpret_cast<int64_t*>(sums.data()), sums.size());
  job_.communicator.allreduce(comm::Buffer(integers), comm::Reduction::sum, call);
  return Checksum().add(std::as_bytes(std::span(sums))).hex();
}

int Worker::owner(size_t place, int tensor_index) const {
  return plan::ranks_of(plan::stage_ranks(job_.plan, tensor_index), stages_of_state_[place])
      .front();
}

torch::Tensor Worker::fetch(size_t place, const comm::Call& call) {
  constexpr int kTag = comm::kStateTags.first;
  const torch::NoGradGuard no_grad;
  shard::Slice slice = job_.model.slice(place);
  const int parts = slice.is_split() ? slice.part.parts : 1;
  const bool first = world_.rank() == 0;
  const torch::Tensor here = job_.model.training.state[place].detach();
  if (parts == 1 && owner(place, 0) == 0) return first ? here : torch::Tensor();
  torch::Tensor whole = first ? job_.model.make_whole(place) : torch::Tensor();
  for (slice.part.index = 0; slice.part.index < parts; ++slice.part.index) {
    const int from = owner(place, slice.part.index);
    if (world_.rank() == from && !first) {
      links_.outbox().send(0, here, kTag);
      links_.outbox().wait(call);
    }
    if (!first) continue;
    torch::Tensor part = from == 0 ? here : job_.model.make_tensor(place);
    if (from != 0) {
      comm::Request request = world_.receive(
          from, std::span(static_cast<std::byte*>(part.data_ptr()), part.nbytes()), kTag);
      world_.wait(request, call);
    }
    if (parts == 1) return part;
    const auto each = static_cast<size_t>(part.element_size());
    const auto at = [&](const torch::Tensor& tensor, int64_t element) {
      return static_cast<std::byte*>(tensor.data_ptr()) + static_cast<size_t>(element) * each;
    };
    part = part.contiguous();
    slice.for_runs(0, part.numel(), [&](int64_t of_whole, int64_t of_part, int64_t count) {
      std::copy_n(at(part, of_part), static_cast<size_t>(count) * each, at(whole, of_whole));
    });
  }
  return whole;
}

void Worker::collect(const comm::Call& call) {
  for (size_t i = 0; i < holders_.size(); ++i) {
    torch::Tensor tensor = fetch(i, call);
    if (tensor.defined() && (owner(i, 0) != 0 || job_.model.slice(i).is_split()))
      job_.model.training.state[i].set_data(tensor);
  }
}

void Worker::close() {
  if (loader_) loader_->close();
  for (const auto& [set, shared] : parameters_)
    for (const int p : sets_[static_cast<size_t>(set)].parameters) {
      torch::Tensor& tensor = job_.model.training.state[static_cast<size_t>(p)];
      tensor.mutable_grad().reset();
      tensor.set_data(tensor.detach().clone());
    }
  for (const auto* groups : {&statistics_, &parameters_})
    for (const auto& [number, group] : *groups) group->close();
  if (tensor_communicator_) tensor_communicator_->close();
}

Held Worker::held() const {
  Held held;
  for (const auto& [set, shared] : parameters_) held += shared->held();
  return held;
}

}  // namespace renkei::run
