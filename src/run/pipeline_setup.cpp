// How a rank of a pipeline gets ready: what it records, which parameters it keeps, with whom it
// shares them. What it does in a step is in pipeline_worker.cpp.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "plan/plan_file.h"
#include "run/buffers.h"
#include "run/captures.h"
#include "run/memory.h"
#include "run/pipeline_worker.h"

namespace renkei::run {
namespace {

constexpr int kStageChannel = 16, kTiedChannel = 32;

bool has(const std::vector<int>& list, int value) {
  return std::ranges::binary_search(list, value);
}

std::vector<torch::ScalarType> dtypes_of(const model::Capture& capture) {
  std::vector<torch::ScalarType> types;
  for (const torch::jit::Value* value : capture.values)
    types.push_back(*value->type()->expect<c10::TensorType>()->scalarType());
  return types;
}

}  // namespace

PipelineWorker::PipelineWorker(const TrainJob& job, const TrainOptions& options)
    : job_(job),
      options_(options),
      world_(job.communicator.transport()),
      lanes_({.count = job.train_data.count(),
              .global_batch = job.plan.batch.global,
              .seed = options.seed,
              .run = options.loader.run},
             Lanes::count(job.plan), static_cast<int>(job.plan.batch.accumulation)),
      tasks_(schedule::make_schedule(job.plan, world_.rank())),
      links_(world_, job_.plan) {
  check_options();
  model::batch_norm_policy().mode = options.batch_norm;
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
  broadcast_state(job_.network, job_.communicator, call("broadcast of the initial state"));
  record_network();

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

PipelineWorker::~PipelineWorker() {
  model::batch_norm_policy() = {};
}

void PipelineWorker::check_options() const {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ErrorCode::usage, what, hint);
  };
  plan::check_ranks(job_.plan, world_.size(), "the plan");
  if (options_.batch_norm == model::BatchNormMode::synchronised)
    refuse("synchronised batch normalisation is not possible in a pipeline",
           "use --plan data, or leave train.batch_norm out");
  if (options_.update.clip_norm || options_.update.loss_scale.dynamic)
    refuse("clipping and dynamic loss scaling are not possible in a pipeline",
           "use --plan data, or leave optim.clip_norm and optim.loss_scale out");
}

// The sizes of the micro-batches that this rank meets: the last batch of an epoch may be smaller.
std::set<int64_t> PipelineWorker::sizes_of(const Lanes& lanes) const {
  std::set<int64_t> sizes;
  for (const Stage& stage : stages_)
    for (const int64_t step : {int64_t{0}, lanes.sampler().steps_per_epoch() - 1})
      for (int m = 0; m < lanes.micro_batches(); ++m)
        sizes.insert(lanes.samples(step, m, stage.lanes));
  sizes.erase(0);
  if (sizes.empty()) sizes.insert(1);
  return sizes;
}

// Records the network once for each size. `stages_of` gives the stage of each op.
void PipelineWorker::record(
    RecordedNetwork& network, std::map<int64_t, model::Program> Stage::*into,
    const std::set<int64_t>& sizes, const std::function<model::Capture(int64_t samples)>& capture,
    const std::function<std::vector<int>(const model::Capture&)>& stages_of) {
  // Neighbours with other numbers of replicas exchange parts of micro-batches: where is the batch?
  const bool divided = std::ranges::any_of(job_.plan.stage_list, [&](const plan::Stage& other) {
    return other.ranks.size() != stages_.front().ranks.size();
  });
  for (const int64_t samples : sizes) {
    model::Capture captured = capture(samples);
    if (network.stages.empty()) {
      network.stages = plan::stage_values(captured.graph, stages_of(captured), job_.plan.stages);
      if (divided) find_batch_dimensions(captured, capture(samples + 1));
      network.batch_dimension = captured.batch_dimension;
      network.graph = captured.graph;
      network.dtypes = dtypes_of(captured);
    }
    for (const graph::Value& value : captured.graph.values)
      network.shapes[samples].push_back(value.shape);
    for (Stage& stage : stages_) {
      const auto& values = network.stages[static_cast<size_t>(stage.number)];
      (stage.*into).emplace(samples, model::Program(captured, values.ops, values.made));
    }
  }
}

void PipelineWorker::record_network() {
  record(
      training_, &Stage::programs, sizes_of(lanes_),
      [&](int64_t samples) {
        return capture_training(job_.network, job_.objective, job_.train_data, samples);
      },
      [&](const model::Capture& capture) {
        plan::check_against(job_.plan, capture.graph, "the plan");
        state_ = capture.parameters;
        return plan::stage_of_ops(job_.plan, capture.graph);
      });
  check_links(training_, job_.plan);
  for (const torch::Tensor& tensor : state_) shapes_.push_back(tensor.sizes().vec());
  parameters_ = job_.network.parameters().size();
  const std::vector<std::vector<int>> stages_of = stages_of_parameters();

  if (job_.held_out) {
    const int64_t at_once = std::max<int64_t>(64, job_.plan.batch.global / lanes_.micro_batches());
    evaluation_lanes_.emplace(
        data::SamplerOptions{
            .count = job_.held_out->count(), .global_batch = at_once, .shuffle = false},
        lanes_.count(), 1);
    record(
        evaluation_, &Stage::evaluation, sizes_of(*evaluation_lanes_),
        [&](int64_t samples) {
          return capture_evaluation(job_.network, job_.objective, *job_.held_out, samples);
        },
        [&](const model::Capture& capture) {
          return plan::stages_by_parameters(capture.graph, stages_of);
        });
  }
  divide_parameters(stages_of);
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
      for (const int p : training_.graph.ops[static_cast<size_t>(op)].parameters) used.insert(p);
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
    if (i < parameters_ && stages_of[i].size() > 1) tied[holders_.back()].push_back(index);
    for (Stage& stage : stages_) {
      if (!has(stages_of[i], stage.number)) continue;
      if (i >= parameters_)
        stage.buffers.push_back(index);
      else if (stages_of[i].size() == 1)
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
  group.flat = std::make_unique<FlatParameters>(parameters, memory);
  UpdateOptions update = options_.update;
  update.overlap = overlap;
  group.updater = std::make_unique<ParameterUpdater>(
      *group.flat, job_.plan.sharded_optimizer ? Division::all : Division::none,
      *group.communicator, update);
}

}  // namespace renkei::run
