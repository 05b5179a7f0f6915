// How a rank gets ready: which stages it has, which parameters it keeps, with whom it shares them.
// What it does in a step is in worker.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "comm/free_groups.h"
#include "comm/transport/tags.h"
#include "plan/plan_file.h"
#include "program/effects.h"
#include "run/buffers.h"
#include "run/memory.h"
#include "run/worker.h"

namespace renkei::run {
namespace {

plan::TensorPlace place_in_group(const plan::Plan& plan, const comm::Transport& world) {
  plan::check_ranks(plan, world.size(), "the plan");
  return plan::tensor_place(plan, world.rank());
}

// What its tensor group has in common of each place of the state.
std::vector<plan::Share> shares_of(const Model& model, int tensor) {
  std::vector<plan::Share> shares;
  for (const shard::Slice& slice : model.slices)
    shares.push_back(slice.is_split()    ? plan::Share::own
                     : slice.is_summed() ? plan::Share::summed
                                         : plan::Share::equal);
  if (shares.empty() && tensor > 1)
    throw Error(ErrorCode::bug, "the plan divides ops, but the network is whole");
  return shares;
}

// Whether batch normalisation has one value of a channel in a sample, as after a dense layer.
bool single_values_of_a_sample(const program::Program& program) {
  if (program.symbols.size() != 1) return false;  // sizes that only the run knows
  return std::ranges::any_of(program.ops, [&](const program::Op& op) {
    if (!program::normalises_by_batch(op)) return false;
    const auto& input = program.value(program::references(op).front());
    const auto sizes = program::sizes_of(input, program::with_batch(program, 1));
    int64_t values = 1;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != 1) values *= sizes[d];
    return values == 1;
  });
}

// What the operations of a rank begin with.
ExecutionContext make_context(const TrainOptions& options) {
  ExecutionContext context{.winograd = options.compute.winograd,
                           .dense = options.compute.dense,
                           .products = options.compute.products};
  context.sink.direct = options.compute.direct_gradients;
  context.batch_norm.mode = options.batch_norm;
  context.batch_norm.refuses_single = true;
  return context;
}

}  // namespace

data::SamplerOptions Worker::sampling() const {
  return {.count = job_.train_data.count(),
          .global_batch = job_.plan.batch.global,
          .seed = options_.seed,
          .shuffle = options_.shuffle,
          .run = options_.loader.run};
}

Worker::Worker(const TrainJob& job, const TrainOptions& options)
    : job_(job),
      options_(options),
      world_(job.communicator.transport()),
      context_(make_context(options)),
      tensor_(place_in_group(job.plan, world_)),
      ranks_of_stage_(plan::stage_ranks(job.plan, tensor_.index)),
      loss_scale_(options.update.loss_scale),
      links_(world_, ranks_of_stage_) {
  training_ =
      std::make_unique<Phase>(Phase{.network = StagedNetwork(job_.model.training, job_.plan),
                                    .lanes = Lanes(sampling(), Lanes::count(ranks_of_stage_),
                                                   static_cast<int>(job_.plan.batch.accumulation)),
                                    .tasks = {}});
  check_links(training_->network, ranks_of_stage_);
  place_stages(*training_);
  divide_state();
  join_tensor_group();
  if (job_.held_out) prepare_evaluation();
  prepare_batch_norm();

  schedule::StepParts parts{.norm = options_.update.needs_norm()};
  for (size_t s = ranks_of_stage_.size(); s < sets_.size(); ++s)
    parts.tied.push_back(sets_[s].stages);
  training_->tasks = schedule::make_schedule(job_.plan, world_.rank(), parts);

  if (job_.called) return;
  loader_ = make_loader(*training_, job_.train_data, options_.loader);
  training_->loader = loader_.get();
}

std::unique_ptr<BatchLoader> Worker::make_loader(const Phase& phase, const data::Dataset& data,
                                                 data::LoaderOptions options) const {
  const Stage::Place& first = phase.stages.front().place();
  data::SamplerOptions sampling = phase.lanes.sampler().options();
  sampling.ranks = static_cast<int>(first.ranks.size());
  options.rank = first.replica;  // the same in all its stages
  std::set<std::string> used;
  for (const Stage& stage : phase.stages) used.insert(stage.fields().begin(), stage.fields().end());
  std::vector<BatchInput> here, elsewhere;
  for (BatchInput& input : inputs_of(phase.network.program()))
    (used.contains(input.name) ? here : elsewhere).push_back(std::move(input));
  return std::make_unique<BatchLoader>(data, data::Sampler(sampling), options, here, elsewhere);
}

void Worker::place_stages(Phase& phase) {
  for (size_t s = 0; s < ranks_of_stage_.size(); ++s) {
    const std::vector<int>& ranks = ranks_of_stage_[s];
    const auto found = std::ranges::find(ranks, world_.rank());
    if (found == ranks.end()) continue;
    const auto replica = static_cast<int>(found - ranks.begin());
    phase.stages.emplace_back(
        Stage::Place{
            .number = static_cast<int>(s),
            .ranks = ranks,
            .replica = replica,
            .lanes = phase.lanes.of_replica(replica, static_cast<int>(ranks.size())),
            .recompute = !job_.plan.stage_list.empty() && job_.plan.stage_list[s].recompute},
        phase.network, phase.lanes.micro_batches());
  }
}

void Worker::prepare_evaluation() {
  const auto micro_batches = training_->lanes.micro_batches();
  const int64_t at_once =
      std::max<int64_t>(64 * training_->lanes.count(), job_.plan.batch.global / micro_batches);
  const BoundProgram& network = job_.model.evaluation_or_throw();
  // The tensors of evaluation are those of training.
  const auto in_training = training_->network.stages_of_state();
  std::vector<std::vector<int>> stages_of;
  for (const torch::Tensor& tensor : network.state) {
    const auto& state = job_.model.training.state;
    const auto found = std::ranges::find_if(
        state, [&](const torch::Tensor& other) { return other.is_same(tensor); });
    stages_of.push_back(found == state.end()
                            ? std::vector<int>{}
                            : in_training[static_cast<size_t>(found - state.begin())]);
  }
  evaluation_ = std::make_unique<Phase>(Phase{
      .network = StagedNetwork(network, stages_of, job_.plan.stages),
      .lanes = Lanes({.count = job_.held_out->count(), .global_batch = at_once, .shuffle = false},
                     training_->lanes.count(), 1),
      .tasks = {},
      .mode = Stage::Mode::evaluation});
  place_stages(*evaluation_);
  evaluation_->tasks =
      schedule::make_evaluation(job_.plan, world_.rank(), evaluation_->network.loads());
}

// Of a set of parameters: sets that have ranks in common have different ones. Those of a stage come
// first, then what its tensor groups have in common, then sets of several stages; behind the last
// set come statistics of batch normalisation and the tensor group. Counted from the first that was
// free when the worker was made.
int Worker::group_number(int set) const {
  const int chunks = job_.plan.chunks, groups = job_.plan.shape().groups();
  const int of_stages = job_.plan.tensor > 1 ? 3 * chunks : chunks;
  int several = 0;
  for (int s = 0; s < static_cast<int>(sets_.size()); ++s) {
    const plan::ParameterSet& known = sets_[static_cast<size_t>(s)];
    if (known.stages.size() > 1 && s < set) ++several;
  }
  if (set == static_cast<int>(sets_.size())) return of_stages + several;
  const plan::ParameterSet& wanted = sets_[static_cast<size_t>(set)];
  if (wanted.stages.size() > 1) return of_stages + several;
  return static_cast<int>(wanted.share) * chunks + wanted.stages.front() / groups;
}

void Worker::find_free_groups() {
  int count = group_number(static_cast<int>(sets_.size()));
  if (options_.batch_norm == BatchNormMode::synchronised || job_.plan.tensor > 1)
    count += job_.plan.chunks;
  if (job_.plan.tensor > 1) ++count;
  first_group_ = comm::find_free_groups(job_.communicator, count, call("setup of the stages"));
}

// Of messages among some ranks; groups that have ranks in common need different ones.
int Worker::channel(int number) const {
  return comm::channels::group(first_group_ + number);
}

// What only other stages use leaves the memory of this rank, or never gets there.
void Worker::divide_state() {
  Model& model = job_.model;
  const auto stages_of = training_->network.stages_of_state();
  stages_of_state_ = stages_of;
  std::vector<bool> trained;
  for (size_t i = 0; i < stages_of.size(); ++i) {
    holders_.push_back(plan::ranks_of(ranks_of_stage_, stages_of[i]));
    trained.push_back(model.is_trained(i));
    if (std::ranges::binary_search(holders_.back(), world_.rank()))
      model.materialise(i);
    else
      model.release(i);
  }
  sets_ = plan::parameter_sets(ranks_of_stage_, stages_of, trained,
                               {.shares = shares_of(model, job_.plan.tensor),
                                .all_ranks_of_stage = plan::stage_ranks(job_.plan)});
  const auto stages = static_cast<int>(ranks_of_stage_.size());
  find_free_groups();
  for (int s = 0; s < static_cast<int>(sets_.size()); ++s) {
    const plan::ParameterSet& set = sets_[static_cast<size_t>(s)];
    if (!std::ranges::binary_search(set.ranks, world_.rank())) continue;
    const bool tied = s >= stages;
    SharedParameters::Options options{
        .ranks = tied ? set.ranks : ranks_of_stage_[static_cast<size_t>(s)],
        .channel = channel(group_number(s)),
        .divide = job_.plan.sharded_optimizer && !options_.update.only_reduce,
        .own_values = options_.update.only_reduce.has_value(),
        .update = options_.update};
    if (tied) options.update.overlap = false;  // nothing is computed any more
    std::vector<torch::Tensor> parameters;
    for (const int p : set.parameters)
      parameters.push_back(model.training.state[static_cast<size_t>(p)]);
    parameters_[s] =
        std::make_unique<SharedParameters>(parameters, job_.communicator, context_.sink, options);
  }
  for (const Stage& stage : training_->stages) {
    std::vector<torch::Tensor>& buffers = buffers_[stage.number()];
    std::vector<torch::Tensor> others;
    for (size_t i = 0; i < stages_of.size(); ++i)
      if (!trained[i] && std::ranges::binary_search(stages_of[i], stage.number())) {
        const bool buffer = model.training.program.state[i].kind == program::StateKind::buffer;
        (buffer ? buffers : others).push_back(model.training.state[i]);
      }
    comm::Communicator& replicas = parameters(stage.number()).communicator();
    for (const auto* tensors : {&buffers, &others})
      broadcast_state(*tensors, replicas, call("broadcast of the initial state"));
  }
  for (const torch::Tensor& parameter : model.trained_by_autograd())
    context_.sink.remove(parameter);
  release_unused_memory();
}

// The channel of a tensor group comes after those of sets of parameters and of statistics.
void Worker::join_tensor_group() {
  if (job_.plan.tensor == 1) return;
  const optim::OptimizerKind optimizer = options_.update.optimizer.kind;
  if (optimizer == optim::OptimizerKind::lars || optimizer == optim::OptimizerKind::lamb)
    throw Error(ErrorCode::usage,
                fmt::format("{} needs the norm of each whole parameter, and tensor parallel ranks "
                            "have parts",
                            optim::name_of(optimizer)),
                "choose another optimizer, or --set plan.tensor=1");
  // Ranks that divide a batch by samples all need some.
  if (job_.model.divides_batch)
    for (const SampleCount& count : sample_counts())
      if (count.samples > 0 && count.samples < job_.plan.tensor)
        throw Error(ErrorCode::usage,
                    fmt::format("a micro-batch of step {} of an epoch has {} samples, and {} "
                                "ranks divide them",
                                count.step, count.samples, job_.plan.tensor),
                    "use another batch or fewer micro-batches, or --set plan.tensor=1");
  const int number = group_number(static_cast<int>(sets_.size())) + job_.plan.chunks;
  tensor_transport_ = std::make_unique<comm::SubTransport>(world_, tensor_.ranks, channel(number));
  comm::CommunicatorOptions options = job_.communicator.options_among(tensor_.ranks);
  options.wire.reset();  // values, not only gradients: as they are
  tensor_communicator_ =
      std::make_unique<comm::Communicator>(*tensor_transport_, std::move(options));
  context_.tensor = {.communicator = tensor_communicator_.get(),
                     .index = tensor_.index,
                     .timeout_seconds = options_.timeout_seconds};
}

Worker::~Worker() = default;

// Synchronised, each stage exchanges its sums among its replicas, beside what the reducer's thread
// does.
std::vector<Worker::SampleCount> Worker::sample_counts() const {
  const Lanes& lanes = training_->lanes;
  const int64_t last = lanes.sampler().steps_per_epoch() - 1;
  std::vector<SampleCount> list;
  for (const int64_t step : {int64_t{0}, last})
    for (const auto& ranks : ranks_of_stage_)
      for (int replica = 0; replica < static_cast<int>(ranks.size()); ++replica)
        for (int m = 0; m < lanes.micro_batches(); ++m) {
          if (step >= options_.steps.value_or(last + 1)) continue;
          const auto replicas = static_cast<int>(ranks.size());
          list.push_back(
              {step, replicas, lanes.samples(step, m, lanes.of_replica(replica, replicas))});
        }
  return list;
}

void Worker::prepare_batch_norm() {
  if (options_.batch_norm != BatchNormMode::synchronised) {
    // Told now, not at the end of an epoch.
    if (!job_.called && single_values_of_a_sample(training_->network.program()))
      for (const SampleCount& count : sample_counts())
        if (count.samples == 1) refuse_single_values();
    return;
  }
  for (const SampleCount& count : sample_counts())
    if (count.samples == 0)
      throw Error(ErrorCode::usage,
                  fmt::format("synchronised batch normalisation needs samples on every rank, "
                              "and step {} of an epoch has {} for {} ranks",
                              count.step, training_->lanes.sampler().batch(count.step).size(),
                              count.replicas),
                  "use another batch, or --set train.batch_norm=rank");
  const int first = group_number(static_cast<int>(sets_.size()));
  for (const Stage& stage : training_->stages) {
    const int number = stage.number();
    statistics_[number] = std::make_unique<SharedParameters>(
        std::vector<torch::Tensor>{}, job_.communicator, context_.sink,
        SharedParameters::Options{.ranks = stage.place().ranks,
                                  .channel = channel(first + number / job_.plan.shape().groups()),
                                  .update = options_.update});
    sum_statistics_[number] = [this, number](std::span<double> sums) {
      statistics_.at(number)->communicator().allreduce(comm::Buffer(sums), comm::Reduction::sum,
                                                       call("statistics of batch normalisation"));
    };
  }
}

}  // namespace renkei::run
