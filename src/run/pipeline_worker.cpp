#include "run/pipeline_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "optim/loss_scale.h"
#include "run/buffers.h"

namespace renkei::run {

using schedule::Task;
using schedule::TaskKind;

// --- a step ---

comm::Call PipelineWorker::call(std::string_view operation) const {
  return {
      .operation = operation, .step = position_.step, .timeout_seconds = options_.timeout_seconds};
}

PipelineWorker::Stage& PipelineWorker::stage(int number) {
  const auto found = std::ranges::find(stages_, number, &Stage::number);
  if (found == stages_.end())
    throw Error(ErrorCode::bug, fmt::format("stage {} is not on rank {}", number, world_.rank()));
  return *found;
}

PipelineWorker::MicroBatch& PipelineWorker::micro_batch(const Task& task) {
  return stage(task.stage).micro_batches[static_cast<size_t>(task.micro_batch)];
}

std::vector<ParameterUpdater*> PipelineWorker::updaters() {
  std::vector<ParameterUpdater*> list;
  for (const Stage& stage : stages_)
    if (stage.group.updater) list.push_back(stage.group.updater.get());
  for (const Group& group : tied_) list.push_back(group.updater.get());
  return list;
}

void PipelineWorker::begin_step(const StepPosition& position, double learning_rate) {
  position_ = position;
  learning_rate_ = learning_rate;
  global_samples_ = lanes_.sampler().batch(position.step_in_epoch).size();
  loss_sum_ = 0;
  next_receive_ = 0;
  context_.sink.begin_step();
  for (Stage& stage : stages_) {
    if (stage.group.flat) stage.group.flat->begin_step();
    for (int m = 0; m < lanes_.micro_batches(); ++m)
      stage.micro_batches[static_cast<size_t>(m)].samples =
          lanes_.samples(position.step_in_epoch, m, stage.lanes);
  }
  for (Group& group : tied_) group.flat->begin_step();
}

void PipelineWorker::execute(const Task& task) {
  Stage& here = stage(task.stage);
  Group& group = here.group;
  switch (task.kind) {
    case TaskKind::load: {
      MicroBatch& micro = micro_batch(task);
      micro.batch =
          loader_->load(position_.epoch, position_.step_in_epoch,
                        lanes_.slices(position_.step_in_epoch, task.micro_batch, here.lanes));
      return;
    }
    case TaskKind::receive:
      return receive(task);
    case TaskKind::send:
      return send(task);
    case TaskKind::forward:
      post_next_receive();
      return forward(task);
    case TaskKind::backward:
    case TaskKind::backward_input:
      post_next_receive();
      return backward(task);
    case TaskKind::backward_weight: {
      post_next_receive();
      MicroBatch& micro = micro_batch(task);
      if (micro.put_off) micro.put_off->run();
      micro.put_off.reset();
      return;
    }
    case TaskKind::reduce:
      if (!group.updater) return;
      if (!group.updater->started()) start_update(group);
      return group.updater->finish_reduction();
    case TaskKind::update:
      if (group.updater) group.updater->finish_update();
      return;
  }
}

double PipelineWorker::end_step() {
  for (Group& group : tied_) {
    start_update(group);
    group.updater->finish_reduction();
    group.updater->finish_update();
  }
  links_.outbox().wait(call("transfers between stages"));
  job_.communicator.allreduce(comm::Buffer(std::span(&loss_sum_, 1)), comm::Reduction::sum,
                              call("allreduce of the loss"));
  return loss_sum_;
}

void PipelineWorker::start_update(Group& group) {
  group.updater->start(position_.step,
                       {.number = position_.step + 1,
                        .epoch = static_cast<double>(position_.epoch) +
                                 static_cast<double>(position_.step_in_epoch) /
                                     static_cast<double>(lanes_.sampler().steps_per_epoch()),
                        .learning_rate = learning_rate_});
}

// --- computing ---

std::vector<torch::Tensor> PipelineWorker::state_for(const Executor& executor,
                                                     const std::vector<torch::Tensor>& state,
                                                     bool copy_buffers) const {
  std::vector<torch::Tensor> tensors = tensors_at(state, executor.state());
  if (copy_buffers)
    for (torch::Tensor& tensor : tensors)
      if (!tensor.requires_grad()) tensor = tensor.clone();
  return tensors;
}

std::vector<torch::Tensor> PipelineWorker::compute(Stage& stage, const Executor& executor,
                                                   MicroBatch& micro, const StagedProgram& network,
                                                   bool with_gradients, bool again) {
  const torch::AutoGradMode gradients(with_gradients);
  std::vector<torch::Tensor> inputs;
  for (const int value : network.cut.inputs_of(executor)) {
    if (const std::string_view name = network.cut.input_name(value); !name.empty()) {
      inputs.push_back(name == "target" ? micro.batch.target : micro.batch.input);
      continue;
    }
    const torch::Tensor& received = micro.received.at(value);
    if (!with_gradients || !network.cut.graph().values[static_cast<size_t>(value)].gradient) {
      inputs.push_back(received);
      continue;
    }
    torch::Tensor leaf = received.detach().requires_grad_();
    // A node of its own, in which gradients of later stages and of this one meet.
    torch::Tensor inner = leaf.view_as(leaf);
    inputs.push_back(inner);
    micro.leaves[value] = std::move(leaf);
    micro.inner[value] = std::move(inner);
  }
  const auto number = static_cast<int64_t>(&micro - stage.micro_batches.data());
  context_.random = {.seed = options_.seed,
                     .step = position_.step,
                     .micro_batch = stage.replica * int64_t{lanes_.micro_batches()} + number};
  const auto& state = &network == &training_ ? state_ : job_.model.evaluation->state;
  return executor.run(inputs, state_for(executor, state, again), micro.samples, context_);
}

void PipelineWorker::forward(const Task& task) {
  Stage& here = stage(task.stage);
  MicroBatch& micro = micro_batch(task);
  if (micro.samples == 0) return;
  const auto& values = training_.stages[static_cast<size_t>(here.number)];
  micro.made = compute(here, *here.training, micro, training_, !here.recompute, false);
  for (size_t i = 0; i < micro.made.size(); ++i)
    if (values.made[i] == training_.cut.graph().outputs[0])
      loss_sum_ += micro.made[i].item<double>();
}

void PipelineWorker::backward(const Task& task) {
  Stage& here = stage(task.stage);
  MicroBatch& micro = micro_batch(task);
  const bool last = task.micro_batch + 1 == lanes_.micro_batches();
  const bool whole = task.kind == TaskKind::backward;
  if (last && whole && job_.plan.chunks == 1 && here.group.updater) start_update(here.group);
  if (micro.samples == 0) return;
  const auto& values = training_.stages[static_cast<size_t>(here.number)];
  if (here.recompute) micro.made = compute(here, *here.training, micro, training_, true, true);

  std::vector<torch::Tensor> roots, seeds;
  for (size_t i = 0; i < micro.made.size(); ++i) {
    if (!micro.made[i].requires_grad()) continue;
    const int value = values.made[i];
    if (value == training_.cut.graph().outputs[0]) {
      const double scale = optim::LossScale(options_.update.loss_scale).scale();
      roots.push_back(micro.made[i]);
      seeds.push_back(
          torch::full_like(micro.made[i], scale / static_cast<double>(global_samples_)));
    } else if (const auto found = micro.gradients.find(value); found != micro.gradients.end()) {
      roots.push_back(micro.made[i]);
      seeds.push_back(found->second);
    }
  }
  for (const auto& [value, inner] : micro.inner)
    if (const auto found = micro.gradients.find(value); found != micro.gradients.end()) {
      roots.push_back(inner);
      seeds.push_back(found->second);
    }
  if (!whole) micro.put_off = std::make_unique<DeferredGradients>();
  context_.deferred = micro.put_off.get();
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  context_.deferred = nullptr;

  for (const int value : values.incoming) {
    if (!training_.cut.graph().values[static_cast<size_t>(value)].gradient) continue;
    torch::Tensor gradient;
    if (const auto leaf = micro.leaves.find(value); leaf != micro.leaves.end())
      gradient = leaf->second.grad();
    else if (const auto passed = micro.gradients.find(value); passed != micro.gradients.end())
      gradient = passed->second;
    micro.input_gradients[value] =
        gradient.defined() ? gradient : torch::zeros_like(micro.received.at(value));
  }
  micro.made.clear();
  micro.inner.clear();
  micro.leaves.clear();
  micro.received.clear();
  micro.gradients.clear();
  micro.batch = {};
}

// --- between stages ---

StageLinks::End PipelineWorker::end_at(const Task& task) {
  return {.network = training_,
          .lanes = lanes_,
          .stage = task.stage,
          .mine = stage(task.stage).lanes,
          .step = position_.step_in_epoch,
          .micro_batch = task.micro_batch};
}

// Those made here, without their history, and those passed on.
StageLinks::Values PipelineWorker::outgoing(const plan::StageValues& values,
                                            const MicroBatch& micro) {
  StageLinks::Values tensors;
  for (const int value : values.outgoing) {
    const auto made = std::ranges::find(values.made, value);
    tensors[value] = made == values.made.end()
                         ? micro.received.at(value)
                         : micro.made[static_cast<size_t>(made - values.made.begin())].detach();
  }
  return tensors;
}

void PipelineWorker::send(const Task& task) {
  MicroBatch& micro = micro_batch(task);
  if (micro.samples == 0) return;
  if (task.peer < task.stage) {
    links_.send(end_at(task), task.peer, micro.input_gradients);
    micro.input_gradients.clear();
    return;
  }
  links_.send(end_at(task), task.peer,
              outgoing(training_.stages[static_cast<size_t>(task.stage)], micro));
  if (stage(task.stage).recompute) micro.made.clear();  // they will be made again
}

void PipelineWorker::receive(const Task& task) {
  if (!posted_) post_next_receive();
  const bool forward = task.peer < task.stage;
  MicroBatch& micro = micro_batch(task);
  (forward ? micro.received : micro.gradients) =
      links_.finish(*std::exchange(posted_, {}),
                    call(forward ? "receive of activations" : "receive of gradients"));
}

// One transfer ahead of the work that needs it.
void PipelineWorker::post_next_receive() {
  if (posted_) return;
  while (next_receive_ < tasks_.size() && tasks_[next_receive_].kind != TaskKind::receive)
    ++next_receive_;
  if (next_receive_ == tasks_.size()) return;
  const Task& task = tasks_[next_receive_++];
  posted_ = links_.post(end_at(task), task.peer);
}

// --- besides the steps ---

void PipelineWorker::average_buffers(const comm::Call& call) {
  for (Stage& stage : stages_) {
    std::vector<torch::Tensor> buffers;
    for (const int b : stage.buffers) buffers.push_back(state_[static_cast<size_t>(b)]);
    run::average_buffers(buffers, *stage.group.communicator, call);
  }
}

Evaluation PipelineWorker::evaluate(const comm::Call& call) {
  const Lanes& lanes = *evaluation_lanes_;
  data::LoaderOptions loading = options_.loader;
  loading.epochs = 1;
  loading.peers = nullptr;  // they keep the samples of training
  data::SamplerOptions sampling = lanes.sampler().options();
  sampling.ranks = static_cast<int>(stages_.front().ranks.size());
  BatchLoader loader(*job_.held_out, data::Sampler(sampling), loading);
  std::array<double, 2> sums{};
  for (int64_t step = 0; step < lanes.sampler().steps_per_epoch(); ++step)
    for (Stage& stage : stages_) {
      const auto& values = evaluation_->stages[static_cast<size_t>(stage.number)];
      MicroBatch& micro = stage.micro_batches.front();
      micro = {.samples = lanes.samples(step, 0, stage.lanes)};
      // All stages load, whether they use it or not: then all have finished with the same batch.
      micro.batch = loader.load(0, step, lanes.slices(step, 0, stage.lanes));
      const StageLinks::End end{.network = *evaluation_,
                                .lanes = lanes,
                                .stage = stage.number,
                                .mine = stage.lanes,
                                .step = step,
                                .micro_batch = 0};
      if (stage.number > 0)
        micro.received = links_.finish(links_.post(end, stage.number - 1), call);
      if (micro.samples > 0) {
        micro.made = compute(stage, *stage.evaluation, micro, *evaluation_, false, false);
        for (size_t i = 0; i < values.made.size(); ++i)
          for (size_t o = 0; o < evaluation_->cut.graph().outputs.size(); ++o)
            if (values.made[i] == evaluation_->cut.graph().outputs[o])
              sums[o] += micro.made[i].item<double>();
      }
      if (stage.number + 1 < job_.plan.stages && micro.samples > 0)
        links_.send(end, stage.number + 1, outgoing(values, micro));
      micro = {};
    }
  links_.outbox().wait(call);
  job_.communicator.allreduce(comm::Buffer(std::span<double>(sums)), comm::Reduction::sum, call);
  const auto samples = static_cast<double>(job_.held_out->count());
  Evaluation result{.loss = sums[0] / samples, .samples = job_.held_out->count()};
  if (evaluation_->cut.graph().outputs.size() > 1) result.accuracy = sums[1] / samples;
  return result;
}

std::string PipelineWorker::collect_parameters(const comm::Call& call) {
  constexpr int kTag = 19'999;  // below those of the stages
  std::string checksum(16, ' ');
  for (size_t i = 0; i < state_.size(); ++i) {
    const int owner = holders_[i].front();
    if (owner == 0) continue;
    if (world_.rank() == owner) links_.outbox().send(0, state_[i].detach(), kTag);
    if (world_.rank() != 0) continue;
    const torch::Tensor whole = torch::empty(shapes_[i], state_[i].options().requires_grad(false));
    comm::Request request = world_.receive(
        owner, std::span(static_cast<std::byte*>(whole.data_ptr()), whole.nbytes()), kTag);
    world_.wait(request, call);
    state_[i].set_data(whole);
  }
  links_.outbox().wait(call);
  if (world_.rank() == 0) checksum = checksum_of(job_.model.trained());
  job_.communicator.broadcast(
      comm::Buffer(std::span(reinterpret_cast<std::byte*>(checksum.data()), checksum.size())), 0,
      call);
  return checksum;
}

Worker::Held PipelineWorker::held() const {
  Held held{.in_tensors = true};
  const auto add = [&](const Group& group) {
    if (!group.flat) return;
    const auto bytes = static_cast<int64_t>(group.flat->value_span().size_bytes());
    held.parameters += bytes;
    held.gradients += bytes;
    held.optimizer += static_cast<int64_t>(group.updater->state_bytes());
  };
  for (const Stage& stage : stages_) add(stage.group);
  for (const Group& group : tied_) add(group);
  return held;
}

}  // namespace renkei::run
