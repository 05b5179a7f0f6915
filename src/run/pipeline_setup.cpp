// How a rank of a pipeline gets ready: where it cuts the network, which parameters it keeps, with
// whom it shares them. What it does in a step is in pipeline_worker.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "plan/plan_file.h"
#include "run/buffers.h"
#include "run/memory.h"
#include "run/pipeline_worker.h"

namespace renkei::run {
namespace {

constexpr int kStageChannel = 16, kTiedChannel = 32;

bool has(const std::vector<int>& list, int value) {
  return std::ranges::binary_search(list, value);
}

}  // namespace

PipelineWorker::PipelineWorker(const TrainJob& job, const TrainOptions& options)
    : job_(job),
      options_(options),
      world_(job.communicator.transport()),
      context_(make_context(options)),
      lanes_({.count = job.train_data.count(),
              .global_batch = job.plan.batch.global,
              .seed = options.seed,
              .run = options.loader.run},
             Lanes::count(job.plan), static_cast<int>(job.plan.batch.accumulation)),
      state_(job.model.training.state),
      training_{CutProgram(job.model.training.program), {}},
      tasks_(schedule::make_schedule(job.plan, world_.rank())),
      links_(world_, job_.plan) {
  check_options();
  for (size_t s = 0; s < job.plan.stage_list.size(); ++s) {
    const plan::Stage& planned = job.plan.stage_list[s];
    const auto found = std::ranges::find(planned.ranks, world_.rank());
    if (found == planned.ranks.end()) continue;
    Stage stage{.number = static_cast<int>(s),
                .ranks = planned.ranks,
                .replica = static_cast<int>(found - planned.ranks.begin()),
                .recompute = planned.recompute};
    stage.lanes = lanes_.of_replica(stage.replica, static_cast<int>(planned.ranks.size()));
    stage.micro_batches.resize(static_cast<size_t>(lanes_.micro_batches()));
    stages_.push_back(std::move(stage));
  }
  broadcast_state(state_, job_.communicator, call("broadcast of the initial state"));
  cut_network();

  const size_t replicas = stages_.front().ranks.size();
  options_.loader.rank = stages_.front().replica;  // the same in all its stages
  loader_ = std::make_unique<BatchLoader>(job_.train_data,
                                          data::Sampler({.count = job_.train_data.count(),
                                                         .global_batch = job_.plan.batch.global,
                                                         .ranks = static_cast<int>(replicas),
                                                         .seed = options_.seed,
                                                         .run = options_.loader.run}),
                                          options_.loader);
}

void PipelineWorker::check_options() const {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ErrorCode::usage, what, hint);
  };
  plan::check_ranks(job_.plan, world_.size(), "the plan");
  if (options_.batch_norm == BatchNormMode::synchronised)
    refuse("synchronised batch normalisation is not possible in a pipeline",
           "use --plan data, or leave train.batch_norm out");
  if (options_.update.clip_norm || options_.update.loss_scale.dynamic)
    refuse("clipping and dynamic loss scaling are not possible in a pipeline",
           "use --plan data, or leave optim.clip_norm and optim.loss_scale out");
}

void PipelineWorker::cut_network() {
  const graph::Graph& graph = training_.cut.graph();
  plan::check_against(job_.plan, graph, "the plan");
  training_.stages =
      plan::stage_values(graph, plan::stage_of_ops(job_.plan, graph), job_.plan.stages);
  check_links(training_, job_.plan);
  for (const torch::Tensor& tensor : state_) shapes_.push_back(tensor.sizes().vec());
  const std::vector<std::vector<int>> stages_of = stages_of_parameters();
  for (Stage& stage : stages_) {
    const auto& values = training_.stages[static_cast<size_t>(stage.number)];
    stage.training.emplace(training_.cut.executor(values.ops, values.made));
  }
  if (job_.held_out) {
    const int64_t at_once = std::max<int64_t>(64, job_.plan.batch.global / lanes_.micro_batches());
    evaluation_lanes_.emplace(
        data::SamplerOptions{
            .count = job_.held_out->count(), .global_batch = at_once, .shuffle = false},
        lanes_.count(), 1);
    const BoundProgram& evaluation = job_.model.evaluation_or_throw();
    evaluation_.emplace(StagedProgram{CutProgram(evaluation.program), {}});
    evaluation_->stages = plan::stage_values(
        evaluation_->cut.graph(),
        plan::stages_by_parameters(evaluation_->cut.graph(), stages_in_evaluation(stages_of)),
        job_.plan.stages);
    for (Stage& stage : stages_) {
      const auto& values = evaluation_->stages[static_cast<size_t>(stage.number)];
      stage.evaluation.emplace(evaluation_->cut.executor(values.ops, values.made));
    }
  }
  divide_parameters(stages_of);
}

// The same for the state of the evaluation program, whose tensors are those of training.
std::vector<std::vector<int>> PipelineWorker::stages_in_evaluation(
    const std::vector<std::vector<int>>& stages_of) const {
  std::vector<std::vector<int>> list;
  for (const torch::Tensor& tensor : job_.model.evaluation->state) {
    const auto found = std::ranges::find_if(
        state_, [&](const torch::Tensor& other) { return other.is_same(tensor); });
    list.push_back(found == state_.end() ? std::vector<int>{}
                                         : stages_of[static_cast<size_t>(found - state_.begin())]);
  }
  return list;
}

// For each parameter and buffer, the stages that use it, ascending.
std::vector<std::vector<int>> PipelineWorker::stages_of_parameters() const {
  std::vector<std::vector<int>> stages_of(state_.size());
  for (size_t s = 0; s < training_.stages.size(); ++s) {
    if (training_.stages[s].loads && !job_.plan.stage_list[s].loads)
      throw Error(ErrorCode::data,
                  fmt::format("the plan: stage {} uses samples, but does not load them", s),
                  "set \"loads\": true there");
    std::set<int> used;
    for (const int op : training_.stages[s].ops)
      for (const int p : training_.cut.graph().ops[static_cast<size_t>(op)].parameters)
        used.insert(p);
    for (const int p : used) stages_of[static_cast<size_t>(p)].push_back(static_cast<int>(s));
  }
  // What nothing uses has gradients of zero, and somebody must keep it.
  for (auto& stages : stages_of)
    if (stages.empty()) stages.push_back(0);
  return stages_of;
}

// Those of other stages leave the memory of this rank.
void PipelineWorker::divide_parameters(const std::vector<std::vector<int>>& stages_of) {
  std::map<std::vector<int>, std::vector<int>> tied;  // by ranks
  for (size_t i = 0; i < state_.size(); ++i) {
    std::set<int> ranks;
    for (const int s : stages_of[i]) {
      const auto& of_stage = job_.plan.stage_list[static_cast<size_t>(s)].ranks;
      ranks.insert(of_stage.begin(), of_stage.end());
    }
    holders_.emplace_back(ranks.begin(), ranks.end());
    const auto index = static_cast<int>(i);
    if (job_.model.is_trained(i) && stages_of[i].size() > 1) tied[holders_.back()].push_back(index);
    for (Stage& stage : stages_) {
      if (!has(stages_of[i], stage.number)) continue;
      if (job_.model.training.program.state[i].kind == program::StateKind::buffer)
        stage.buffers.push_back(index);
      else if (job_.model.is_trained(i) && stages_of[i].size() == 1)
        stage.group.parameters.push_back(index);
    }
    if (!ranks.contains(world_.rank()))
      state_[i].set_data(torch::empty({0}, state_[i].options().requires_grad(false)));
  }
  const bool overlap = options_.update.overlap && job_.plan.chunks == 1;
  for (Stage& stage : stages_) {
    stage.group.ranks = stage.ranks;
    open_group(stage.group, kStageChannel, overlap);
  }
  for (const auto& [ranks, parameters] : tied) {
    if (!has(ranks, world_.rank())) continue;
    Group group{.ranks = ranks, .parameters = parameters};
    open_group(group, kTiedChannel, false);
    tied_.push_back(std::move(group));
  }
  for (const torch::Tensor& parameter : job_.model.trained_by_autograd())
    context_.sink.remove(parameter);
  release_unused_memory();
}

void PipelineWorker::open_group(Group& group, int channel, bool overlap) {
  group.transport = std::make_unique<comm::SubTransport>(world_, group.ranks, channel);
  group.communicator = std::make_unique<comm::Communicator>(
      *group.transport, job_.communicator.options_among(group.ranks));
  if (group.parameters.empty()) return;
  std::vector<torch::Tensor> parameters;
  for (const int p : group.parameters) parameters.push_back(state_[static_cast<size_t>(p)]);
  FlatMemory memory;
  memory.gradients = [&](size_t count) {
    return reinterpret_cast<float*>(group.communicator->allocate(count, comm::DType::f32).data);
  };
  group.flat = std::make_unique<FlatParameters>(parameters, context_.sink, memory);
  UpdateOptions update = options_.update;
  update.overlap = overlap;
  group.updater = std::make_unique<ParameterUpdater>(
      *group.flat, job_.plan.sharded_optimizer ? Division::all : Division::none,
      *group.communicator, update);
}

}  // namespace renkei::run
