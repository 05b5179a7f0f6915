#include "run/called_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/transport/tags.h"
#include "run/buffers.h"
#include "run/step_executor.h"

namespace renkei::run {

using schedule::Task;
using schedule::TaskKind;

namespace {

constexpr int kInputTag = comm::kCallTags.first, kOutputTag = kInputTag + 1,
              kGradientTag = kInputTag + 2;

constexpr std::array<std::string_view, static_cast<size_t>(CalledNetwork::Purpose::end)> kPurposes{
    "the model",
    "backward()",
    "state_dict()",
    "load_state_dict()",
    "save()",
    "load()",
    "clip_grad_norm_()",
    "the model with a new kind of batch or in a new mode",
    "close()"};

// What a tensor has of some samples; the whole where it has no batch.
torch::Tensor rows(const torch::Tensor& tensor, int dimension, int64_t samples, int64_t begin,
                   int64_t count) {
  if (dimension < 0 || count == samples) return tensor;
  const int64_t scale = tensor.size(dimension) / samples;
  return tensor.narrow(dimension, begin * scale, count * scale);
}

int64_t hash_of(const CalledNetwork::Inputs& inputs) {
  Checksum sum;
  for (const auto& [name, tensor] : inputs) {
    const int64_t type = static_cast<int64_t>(tensor.scalar_type());
    sum.add(std::as_bytes(std::span(&type, 1)));
    sum.add(std::as_bytes(std::span(tensor.sizes().data(), tensor.sizes().size())));
  }
  return static_cast<int64_t>(sum.value());
}

}  // namespace

struct CalledNetwork::Program {
  Phase* phase = nullptr;
  std::unique_ptr<Phase> own = {};  // of a program that was added
  schedule::Halves halves = {};
  std::vector<std::vector<std::string>> fields = {};  // that each stage loads
  struct Port {
    int dimension = -1;  // of the batch
    int stage = 0;       // that makes an output
  };
  std::map<std::string, Port, std::less<>> inputs = {};
  std::vector<Port> outputs = {};
};

CalledNetwork::CalledNetwork(const TrainJob& job, const TrainOptions& options, Buffers buffers)
    : Worker(job, options), buffers_policy_(buffers) {
  for (const auto& [set, shared] : parameters_)
    if (shared->flat())
      for (const FlatParameters::Slot& slot : shared->flat()->slots())
        slot.parameter.mutable_grad().reset();
  Program& training = *programs_.emplace_back(std::make_unique<Program>());
  training.phase = training_.get();
  prepare(training);
  device_.emplace(0, held(), world_.rank(), world_.host(world_.rank()));
}

CalledNetwork::~CalledNetwork() = default;

void CalledNetwork::limit_device() {
  device_.reset();
  device_.emplace(options_.device_memory, held(), world_.rank(), world_.host(world_.rank()));
}

void CalledNetwork::close() {
  device_.reset();
  Worker::close();
}

int CalledNetwork::add(const BoundProgram& network) {
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
  Program& made = *programs_.emplace_back(std::make_unique<Program>());
  made.own =
      std::make_unique<Phase>(Phase{.network = StagedNetwork(network, stages_of, job_.plan.stages),
                                    .lanes = training_->lanes,
                                    .tasks = {}});
  made.phase = made.own.get();
  place_stages(*made.phase);
  prepare(made);
  return static_cast<int>(programs_.size()) - 1;
}

void CalledNetwork::prepare(Program& program) {
  const StagedNetwork& network = program.phase->network;
  schedule::StepParts parts{.loads = network.loads()};
  for (size_t s = ranks_of_stage_.size(); s < sets_.size(); ++s)
    parts.tied.push_back(sets_[s].stages);
  program.halves = schedule::make_halves(job_.plan, world_.rank(), parts);
  for (int s = 0; s < network.stages(); ++s) {
    std::vector<std::string>& fields = program.fields.emplace_back();
    for (const Segment& segment : network.segments(s))
      for (const Body::Input& input : segment.body.inputs())
        if (input.from_batch() && std::ranges::count(fields, input.field) == 0)
          fields.push_back(input.field);
  }
  const program::Program& source = network.program();
  for (const program::Port& port : source.inputs)
    program.inputs[port.name] = {.dimension =
                                     graph::batch_dimension(source, source.value(port.value))};
  for (size_t i = 0; i < source.outputs.size(); ++i) {
    Program::Port output{
        .dimension = graph::batch_dimension(source, source.value(source.outputs[i].value)),
        .stage = -1};
    for (int s = 0; s < network.stages(); ++s)
      if (std::ranges::count(network.stage(s).made, network.outputs()[i]) > 0) output.stage = s;
    if (output.stage < 0)
      throw Error(ErrorCode::data,
                  fmt::format("the output '{}' of the model is one of its inputs as it is",
                              source.outputs[i].name),
                  "return what is computed only");
    if (output.dimension < 0 && ranks_of_stage_[static_cast<size_t>(output.stage)].size() !=
                                    static_cast<size_t>(training_->lanes.count()))
      throw Error(ErrorCode::data,
                  fmt::format("the output '{}' of the model has no rows for samples, and stages of "
                              "the plan have different numbers of replicas",
                              source.outputs[i].name),
                  "plan with as many ranks for each stage (plan.stages a divisor of the ranks)");
    program.outputs.push_back(output);
  }
  if (program.outputs.size() > 64 * kMaskWords)
    throw Error(ErrorCode::usage,
                fmt::format("the model has {} outputs, and at most {} can be had from stages",
                            program.outputs.size(), 64 * kMaskWords));
}

// Calls use(home, begin in the home's batch, replica, begin in its piece, count) for the samples of
// a micro-batch of a stage.
template <typename Use>
void CalledNetwork::for_segments(int stage, int micro_batch, int64_t per_rank,
                                 const Use& use) const {
  const Lanes& lanes = phase_->lanes;
  const auto replicas = static_cast<int>(ranks_of_stage_[static_cast<size_t>(stage)].size());
  for (int replica = 0; replica < replicas; ++replica) {
    const LaneRange range = lanes.of_replica(replica, replicas);
    const int64_t origin = lanes.sampler().slice(0, range.begin).begin;
    int64_t in_piece = 0;
    for (const data::Slice& slice : lanes.slices(0, micro_batch, range))
      for (int64_t at = origin + slice.begin; at < origin + slice.end;) {
        const auto home = static_cast<int>(at / per_rank);
        const int64_t end = std::min(origin + slice.end, (home + 1) * per_rank);
        use(home, at - home * per_rank, replica, in_piece, end - at);
        in_piece += end - at;
        at = end;
      }
  }
}

// --- all ranks for one purpose ---

std::vector<CalledNetwork::Words> CalledNetwork::meet(const Words& mine) {
  const auto ranks = static_cast<size_t>(world_.size());
  std::vector<Words> all(ranks, Words{});
  all[static_cast<size_t>(world_.rank())] = mine;
  if (ranks == 1) return all;
  // By one name, whatever the purpose: that ranks differ in it is told below.
  job_.communicator.allreduce(comm::Buffer(std::span(all.front().data(), ranks * kWords)),
                              comm::Reduction::sum, call("call of a staged model"));
  const auto refuse = [&](size_t rank, const std::string& message, const std::string& hint) {
    Error error(ErrorCode::usage, message, hint);
    error.rank = static_cast<int>(rank);
    error.host = world_.host(static_cast<int>(rank));
    throw error;
  };
  for (size_t rank = 1; rank < ranks; ++rank) {
    const Words &first = all[0], &other = all[rank];
    if (other[0] != first[0])
      refuse(rank,
             fmt::format("rank {} calls {} while rank 0 calls {}", rank,
                         kPurposes.at(static_cast<size_t>(other[0])),
                         kPurposes.at(static_cast<size_t>(first[0]))),
             "a model in stages is called by all ranks together, and so are its state_dict() and "
             "backward()");
    if (other[1] == first[1] && other[2] == first[2] && other[3] == first[3]) continue;
    if (static_cast<Purpose>(first[0]) != Purpose::forward)
      refuse(rank, fmt::format("rank {} calls backward() of another call than rank 0", rank),
             "let all ranks make the same calls in the same order, and within no_sync() together");
    if (other[1] != first[1])
      refuse(rank,
             fmt::format("rank {} calls the model in another mode than rank 0: train() or eval(), "
                         "with gradients or without",
                         rank),
             "switch all ranks together");
    refuse(rank,
           fmt::format("the batch of rank {} has other sizes or types than that of rank 0 ({} and "
                       "{} samples)",
                       rank, other[2], first[2]),
           "give all ranks batches of one size: drop the last, smaller one (drop_last=True)");
  }
  return all;
}

// --- forward ---

Lanes CalledNetwork::lanes_for(int64_t samples) const {
  return {{.count = samples, .global_batch = samples, .shuffle = false},
          Lanes::count(ranks_of_stage_),
          static_cast<int>(job_.plan.batch.accumulation)};
}

int64_t CalledNetwork::samples_of(const Program& program, const Inputs& inputs) {
  std::optional<int64_t> samples;
  for (const auto& [name, port] : program.inputs) {
    const auto found = inputs.find(name);
    if (found == inputs.end())
      throw Error(ErrorCode::usage, fmt::format("the input {} is missing", name));
    if (port.dimension >= 0) samples = found->second.size(port.dimension);
  }
  if (!samples)
    throw Error(ErrorCode::data, "the captured model has no dimension that is its batch",
                "give it tensors whose first dimension is the batch, of at least 2 samples");
  if (*samples == 0)
    throw Error(ErrorCode::usage, "the batch has no samples", "leave empty batches out");
  return *samples;
}

CalledNetwork::Result CalledNetwork::forward(int number, const Inputs& inputs,
                                             bool with_gradients) {
  Program& program = *programs_.at(static_cast<size_t>(number));
  const int64_t per_rank = samples_of(program, inputs);
  meet(Words{static_cast<int64_t>(Purpose::forward), 2 * number + (with_gradients ? 1 : 0),
             per_rank, hash_of(inputs)});
  phase_ = program.phase;
  phase_->mode = with_gradients ? Stage::Mode::training : Stage::Mode::evaluation;
  phase_->lanes = lanes_for(per_rank * world_.size());
  position_ = {.epoch = 0, .step_in_epoch = 0, .step = step_};
  exchange_buffers();
  begin_micro_batches(per_rank);
  Result result;
  device_->within([&] {
    take_inputs(program, inputs, per_rank);
    for (const Task& task : program.halves.forward) execute_recorded(task);
    result.outputs = bring_outputs(program, per_rank);
    links_.outbox().wait(call("transfers between stages"));
  });
  loads_.clear();
  results_.clear();
  const bool trains = number == 0 || with_gradients;
  if (trains) ++step_;
  buffers_changed_ |= trains;
  if (with_gradients) result.call = std::make_shared<Call>();
  for (Stage& stage : phase_->stages) {
    std::vector<MicroBatch> kept(stage.micro_batches().size());
    std::swap(kept, stage.micro_batches());
    if (with_gradients) result.call->micro_batches.push_back(std::move(kept));
  }
  if (with_gradients) {
    result.call->program = &program;
    result.call->number = calls_++;
    result.call->step = position_.step;
    result.call->per_rank = per_rank;
    result.call->lanes = phase_->lanes;
  }
  return result;
}

void CalledNetwork::begin_micro_batches(int64_t per_rank) {
  const Lanes& lanes = phase_->lanes;
  for (Stage& stage : phase_->stages)
    for (int m = 0; m < lanes.micro_batches(); ++m) {
      MicroBatch& micro = stage.micro_batch(m);
      micro.samples = lanes.samples(0, m, stage.place().lanes);
      micro.random = {.seed = options_.seed,
                      .step = step_,
                      .micro_batch = stage.place().replica * int64_t{lanes.micro_batches()} + m};
      for_segments(
          stage.number(), m, per_rank, [&](int home, int64_t, int replica, int64_t, int64_t) {
            if (replica == stage.place().replica && home != 0 && buffers_policy_ == Buffers::rank0)
              micro.changes_buffers = false;
          });
    }
}

// Before they are used, replicas of a stage agree on them.
void CalledNetwork::exchange_buffers() {
  if (!std::exchange(buffers_changed_, false) || buffers_policy_ == Buffers::own) return;
  for (const auto& [stage, buffers] : buffers_) {
    comm::Communicator& replicas = parameters(stage).communicator();
    if (buffers.empty() || replicas.transport().size() == 1) continue;
    if (buffers_policy_ == Buffers::mean)
      run::average_buffers(buffers, replicas, call("mean of the buffers"));
    else
      broadcast_state(buffers, replicas, call("broadcast of the buffers"));
  }
}

void CalledNetwork::take_inputs(const Program& program, const Inputs& inputs, int64_t per_rank) {
  const int micro_batches = phase_->lanes.micro_batches();
  loads_.clear();
  for (int m = 0; m < micro_batches; ++m) {
    Moves& moves = loads_.emplace_back(world_, links_.outbox(), kInputTag);
    for (int s = 0; s < phase_->network.stages(); ++s) {
      const std::vector<int>& ranks = ranks_of_stage_[static_cast<size_t>(s)];
      const bool mine = std::ranges::count(ranks, world_.rank()) > 0;
      MicroBatch* micro = mine ? &stage(s).micro_batch(m) : nullptr;
      if (micro) micro->batch.samples = micro->samples;
      for (const std::string& field : program.fields[static_cast<size_t>(s)]) {
        const torch::Tensor home = inputs.find(field)->second.detach();
        const int dimension = program.inputs.find(field)->second.dimension;
        torch::Tensor piece;
        for_segments(s, m, per_rank,
                     [&](int from, int64_t begin, int replica, int64_t at, int64_t count) {
                       const int to = ranks[static_cast<size_t>(replica)];
                       if (dimension < 0 && at > 0) return;  // of several the first
                       torch::Tensor source, place;
                       if (from == world_.rank())
                         source = rows(home, dimension, per_rank, begin, count);
                       if (to == world_.rank()) {
                         if (from == to && count == micro->samples) {
                           piece = source;
                           return;
                         }
                         if (!piece.defined()) {
                           std::vector<int64_t> sizes = home.sizes().vec();
                           if (dimension >= 0) {
                             const auto d = static_cast<size_t>(dimension);
                             sizes[d] = sizes[d] / per_rank * micro->samples;
                           }
                           piece = torch::empty(sizes, home.options());
                         }
                         place = rows(piece, dimension, micro->samples, at, count);
                       }
                       moves.add(from, to, source, place);
                     });
        if (piece.defined()) micro->batch.inputs[field] = piece;
      }
    }
  }
  for (Moves& moves : loads_) moves.send();
}

torch::Tensor CalledNetwork::empty_output(size_t output, int64_t samples) const {
  const program::Program& source = phase_->network.program();
  const program::Value& value = source.value(source.outputs[output].value);
  return torch::empty(program::sizes_of(value, program::with_batch(source, samples)),
                      torch::TensorOptions(scalar_type(value.dtype)));
}

std::vector<torch::Tensor> CalledNetwork::bring_outputs(const Program& program, int64_t per_rank) {
  std::vector<torch::Tensor> outputs(program.outputs.size());
  Moves moves(world_, links_.outbox(), kOutputTag);
  const int here = world_.rank();
  struct Part {  // of an output without rows: a weighted mean
    size_t output;
    torch::Tensor value;
    double weight;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const auto& [dimension, s] = program.outputs[i];
    const std::vector<int>& ranks = ranks_of_stage_[static_cast<size_t>(s)];
    for (int m = 0; m < phase_->lanes.micro_batches(); ++m)
      for_segments(
          s, m, per_rank, [&](int to, int64_t begin, int replica, int64_t at, int64_t count) {
            const int from = ranks[static_cast<size_t>(replica)];
            torch::Tensor made, place;
            if (from == here) {
              const MicroBatch& micro = stage(s).micro_batch(m);
              made = rows(results_.at({s, m}).at(i), dimension, micro.samples, at, count);
            }
            if (to == here && dimension < 0) {
              parts.push_back({i, from == here ? made : empty_output(i, per_rank),
                               static_cast<double>(count) / static_cast<double>(per_rank)});
              if (from != here) place = parts.back().value;
              if (from == here) return;
            } else if (to == here) {
              if (from == to && count == per_rank) {
                outputs[i] = made;
                return;
              }
              if (!outputs[i].defined()) outputs[i] = empty_output(i, per_rank);
              place = rows(outputs[i], dimension, per_rank, begin, count);
            }
            moves.add(from, to, made, place);
          });
  }
  moves.finish(call("exchange of the outputs"));
  for (const Part& part : parts) {
    torch::Tensor& output = outputs[part.output];
    if (part.weight == 1 || !part.value.is_floating_point())
      output = part.value;
    else
      output = output.defined() ? output.add(part.value, part.weight) : part.value * part.weight;
  }
  return outputs;
}

// --- backward ---

void CalledNetwork::backward(Call& call_, const std::vector<torch::Tensor>& gradients,
                             bool reduce) {
  if (call_.done)
    throw Error(ErrorCode::usage,
                "backward() was called twice for one call of the model, whose values are gone",
                "call the model again; stages do not keep them (retain_graph)");
  Words mine{static_cast<int64_t>(Purpose::backward), call_.number, reduce ? 1 : 0};
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined()) mine.at(4 + i / 64) |= int64_t{1} << (i % 64);
  const std::vector<Words> all = meet(mine);
  call_.done = true;
  phase_ = call_.program->phase;
  phase_->lanes = *call_.lanes;
  position_ = {.epoch = 0, .step_in_epoch = 0, .step = call_.step};
  size_t next = 0;
  for (Stage& stage : phase_->stages)
    stage.micro_batches() = std::move(call_.micro_batches[next++]);
  call_.micro_batches.clear();
  device_->within([&] {
    prepare_gradients();
    bring_gradients(call_, gradients, all);
    for (const Task& task : call_.program->halves.backward) {
      const bool follows = task.kind == TaskKind::begin_reduce || task.kind == TaskKind::reduce ||
                           task.kind == TaskKind::update;
      if (reduce || !follows) execute_recorded(task);
    }
  });
  forget_unreached(reduce);
  gradients_are_reduced_ = reduce;
  for (Stage& stage : phase_->stages)
    stage.micro_batches() = std::vector<MicroBatch>(stage.micro_batches().size());
}

// Gradients that are there already are the same on all ranks of a set, or not reduced yet.
void CalledNetwork::prepare_gradients() {
  const torch::NoGradGuard no_grad;
  context_.sink.begin_step();
  reached_.clear();
  had_gradient_.clear();
  for (const auto& [set, shared] : parameters_) {
    if (!shared->flat()) continue;
    std::vector<bool>& had = had_gradient_[set];
    const auto ranks = static_cast<double>(shared->communicator().transport().size());
    for (const FlatParameters::Slot& slot : shared->flat()->slots()) {
      const torch::Tensor gradient = slot.parameter.grad();
      had.push_back(gradient.defined());
      if (gradient.defined() && gradients_are_reduced_ && ranks > 1) gradient.div_(ranks);
    }
    shared->flat()->attach_gradients();
    shared->updater()->forget_reached();
  }
}

void CalledNetwork::bring_gradients(const Call& of, const std::vector<torch::Tensor>& gradients,
                                    const std::vector<Words>& all) {
  const torch::NoGradGuard no_grad;
  Moves moves(world_, links_.outbox(), kGradientTag);
  const int here = world_.rank();
  const double share = 1.0 / world_.size();
  std::vector<torch::Tensor> mine;
  for (const torch::Tensor& gradient : gradients)
    mine.push_back(gradient.defined() && world_.size() > 1 ? gradient * share : gradient);
  for (size_t i = 0; i < of.program->outputs.size(); ++i) {
    const auto& [dimension, s] = of.program->outputs[i];
    const std::vector<int>& ranks = ranks_of_stage_[static_cast<size_t>(s)];
    const auto given_by = [&](int home) {
      return (all[static_cast<size_t>(home)].at(4 + i / 64) >> (i % 64) & 1) != 0;
    };
    for (int m = 0; m < phase_->lanes.micro_batches(); ++m)
      for_segments(
          s, m, of.per_rank, [&](int from, int64_t begin, int replica, int64_t at, int64_t count) {
            if (!given_by(from)) return;
            const int to = ranks[static_cast<size_t>(replica)];
            torch::Tensor source, place;
            if (from == here) {
              source = rows(mine[i], dimension, of.per_rank, begin, count);
              if (dimension < 0 && count != of.per_rank)
                source = source * (static_cast<double>(count) / static_cast<double>(of.per_rank));
            }
            if (to == here) {
              MicroBatch& micro = stage(s).micro_batch(m);
              torch::Tensor& seed = micro.output_gradients[phase_->network.outputs()[i]];
              if (from == to && count == micro.samples) {
                seed = seed.defined() ? seed + source : source;
                return;
              }
              if (!seed.defined()) seed = empty_output(i, micro.samples).zero_();
              place = rows(seed, dimension, micro.samples, at, count);
            }
            moves.add(from, to, source, place);
          });
  }
  moves.finish(call("exchange of the gradients of outputs"));
}

void CalledNetwork::keep_reached(int set) {
  ParameterUpdater* updater = parameters(set).updater();
  if (!updater) return;
  std::vector<int64_t>& kept = reached_[set];
  kept.resize(updater->reached().size());
  std::ranges::transform(kept, updater->reached(), kept.begin(), std::ranges::max);
}

// As in PyTorch, what backward did not reach has no gradient, unless it had one before.
void CalledNetwork::forget_unreached(bool everywhere) {
  for (const auto& [set, shared] : parameters_) {
    if (!shared->flat()) continue;
    keep_reached(set);
    std::vector<int64_t> reached = reached_[set];
    if (everywhere && shared->communicator().transport().size() > 1)
      shared->communicator().allreduce(comm::Buffer(std::span(reached)), comm::Reduction::max,
                                       call("exchange of the parameters in use"));
    const auto& slots = shared->flat()->slots();
    for (size_t i = 0; i < slots.size(); ++i)
      if (reached[i] == 0 && !had_gradient_.at(set)[i]) slots[i].parameter.mutable_grad().reset();
  }
}

// --- tasks ---

void CalledNetwork::execute_recorded(const Task& task) {
  if (!recorder_) return execute(task);
  timeline::Event event = event_of(task, position_.step);
  recorder_->enter(event);
  execute(task);
  if (task.kind == TaskKind::send || task.kind == TaskKind::receive) {
    event.peer = moved().peer;
    event.peer_stage = task.peer;
    event.bytes = moved().bytes;
  }
  event.end = now_seconds();
  recorder_->add(event);
}

void CalledNetwork::execute(const Task& task) {
  switch (task.kind) {
    case TaskKind::load:
      return loads_[static_cast<size_t>(task.micro_batch)].finish(call("exchange of the inputs"));
    case TaskKind::forward: {
      MicroBatch& micro = micro_batch(task);
      if (micro.samples == 0) return;
      Stage& here = stage(task.stage);
      compute_as(here);
      here.forward(micro, phase_->mode, context_);
      std::vector<torch::Tensor>& results = results_[{task.stage, task.micro_batch}];
      for (size_t i = 0; i < phase_->network.outputs().size(); ++i) {
        const torch::Tensor made = here.result(micro, i);
        results.push_back(made.defined() ? made.detach() : made);
      }
      // A stage that will compute again keeps nothing of what it has made; one that sends does so
      // until it has sent.
      if (here.place().recompute && phase_->network.stage(task.stage).outgoing.empty())
        micro.made.clear();
      return;
    }
    case TaskKind::backward: {
      MicroBatch& micro = micro_batch(task);
      if (micro.samples == 0) return;
      compute_as(stage(task.stage));
      return stage(task.stage).backward(micro, {}, Stage::Part::whole, context_);
    }
    case TaskKind::begin_reduce:
    case TaskKind::reduce:
      // In one of them the updater begins to count anew. By then earlier micro-batches have used
      // parameters, or all have: of tied parameters, and of a stage in segments.
      keep_reached(task.stage);
      return Worker::execute(task);
    case TaskKind::loss:
      return links_.outbox().wait(call("transfers between stages"));
    default:
      return Worker::execute(task);
  }
}

}  // namespace renkei::run
