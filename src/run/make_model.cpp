#include "run/make_model.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capture/weights_file.h"
#include "checkpoint/weights.h"
#include "networks/initial_values.h"
#include "shard/solve.h"

namespace renkei::run {
namespace {

using capture::NamedTensors;
using capture::StoredTensor;
using program::Program;
using program::State;
using program::StateKind;

void read_into(const torch::Tensor& tensor, const shard::Slice& slice, const StoredTensor& stored,
               const State& state, const std::string& source) {
  if (!stored.has_values())
    throw Error(ErrorCode::data,
                fmt::format("{} has no values for {}: the model was made on the device meta",
                            source, state.name),
                "it can be planned for another machine (renkei plan --model FILE); to train or "
                "measure it, export it with values");
  if (stored.sizes != slice.sizes)
    throw Error(ErrorCode::data,
                fmt::format("{} does not fit the network: {} is {} in the file and {} in the "
                            "network",
                            source, state.name, fmt::join(stored.sizes, " × "),
                            fmt::join(slice.sizes, " × ")),
                "check model.name and the settings that change its shape, such as model.classes");
  const torch::NoGradGuard no_grad;
  torch::Tensor read = run::scalar_type(stored.dtype) == tensor.scalar_type()
                           ? tensor
                           : torch::empty(tensor.sizes(), run::scalar_type(stored.dtype));
  auto* const bytes = static_cast<char*>(read.data_ptr());
  const int64_t each = read.element_size();
  slice.for_runs(0, read.numel(), [&](int64_t whole, int64_t here, int64_t count) {
    stored.read(whole * each, {bytes + here * each, static_cast<size_t>(count * each)});
  });
  if (!read.is_same(tensor)) tensor.copy_(read);
}

void fill(const torch::Tensor& tensor, const shard::Slice& slice, const State& state,
          const ModelOptions& options) {
  networks::InitialPart part{.seed = options.seed, .name = state.name, .initial = state.initial};
  slice.for_runs(0, tensor.numel(), [&](int64_t whole, int64_t here, int64_t count) {
    part.begin = whole;
    const auto values = [&](auto* first) {
      return std::span(first + here, static_cast<size_t>(count));
    };
    if (tensor.scalar_type() == torch::kInt64)
      networks::fill_initial(values(tensor.data_ptr<int64_t>()), part);
    else
      networks::fill_initial(values(tensor.data_ptr<float>()), part, options.threads);
  });
}

// Where the first values of a network come from: a file of weights, the network's own file, or the
// seed and the names.
class FirstValues {
 public:
  FirstValues(const Program& program, const capture::OpenNetwork& open, const ModelOptions& options)
      : source_(open.network.training.name), own_(open.values), options_(options) {
    if (!options.weights.empty())
      weights_ = capture::fit_weights(program, checkpoint::read_weights(options.weights),
                                      options.weights.string());
  }

  void operator()(const State& state, const shard::Slice& slice,
                  const torch::Tensor& tensor) const {
    if (const auto found = weights_.find(state.name); found != weights_.end())
      read_into(tensor, slice, found->second, state, options_.weights.string());
    else if (const auto known = own_.find(state.name); known != own_.end())
      read_into(tensor, slice, known->second, state, source_);
    else
      fill(tensor, slice, state, options_);
  }

 private:
  std::string source_;
  NamedTensors own_, weights_;
  ModelOptions options_;
};

// The part of the program that this rank computes; all of it where nothing is divided.
shard::Sharded part_for(Program program, const shard::ShardOptions& options) {
  if (options.part.parts > 1) return shard::shard(program, options);
  shard::Sharded whole;
  for (const State& state : program.state)
    whole.state.push_back({.sizes = program::sizes_of(program.value(state.value), {})});
  whole.program = std::move(program);
  return whole;
}

// Evaluation takes the parameters as training has them; how it divides the rest is its own affair.
shard::ShardOptions options_for_evaluation(const Program& program, const shard::Sharded& training,
                                           shard::ShardOptions options) {
  options.pins = shard::pins_of(training);
  // What only the one has needs no pin.
  std::erase_if(options.pins, [&](const shard::Pin& pin) {
    return std::ranges::count(program.state, pin.name, &State::name) == 0;
  });
  options.choice = shard::solve(program, {.parts = options.part.parts,
                                          .batch = false,
                                          .counted_dropout = options.counted_dropout,
                                          .pins = options.pins})
                       .choice;
  return options;
}

}  // namespace

Model make_model(const capture::OpenNetwork& open, const networks::LossOptions& loss,
                 const ModelOptions& options) {
  capture::Programs programs = capture::programs_of(open, loss);
  const FirstValues values(programs.training, open, options);
  const shard::Sharded training = part_for(programs.training, options.shard);
  Model model;
  model.training.state = make_placeholders(training.program);
  if (options.shard.part.parts > 1) model.slices = training.state;
  model.divides_batch = training.divides_batch;
  model.initialise = [values, state = training.program.state, slices = training.state](
                         size_t place, const torch::Tensor& tensor) {
    values(state[place], slices[place], tensor);
  };
  model.training.program = rewrite::rewrite(training.program, options.rewrite).program;
  model.no_evaluation = programs.no_evaluation;
  if (programs.evaluation) {
    rewrite::RewriteOptions evaluating = options.rewrite;
    evaluating.training = false;
    const shard::Sharded part =
        part_for(*programs.evaluation,
                 options.shard.part.parts > 1
                     ? options_for_evaluation(*programs.evaluation, training, options.shard)
                     : options.shard);
    BoundProgram evaluation{.program = rewrite::rewrite(part.program, evaluating).program,
                            .state = {}};
    evaluation.state = shared_state(evaluation.program, model.training, [&](size_t i) {
      torch::Tensor tensor = make_state(evaluation.program, i);
      values(evaluation.program.state[i], part.state[i], tensor);
      return tensor;
    });
    model.evaluation = std::move(evaluation);
  }
  if (!options.on_demand)
    for (size_t i = 0; i < model.training.state.size(); ++i) model.materialise(i);
  return model;
}

BoundProgram make_predictor(const capture::OpenNetwork& open, const ModelOptions& options,
                            capture::Predicted predicted) {
  Program program = capture::prediction_of(open, predicted);
  const FirstValues values(open.network.training, open, options);
  rewrite::RewriteOptions evaluating = options.rewrite;
  evaluating.training = false;
  BoundProgram bound{.program = rewrite::rewrite(program, evaluating).program, .state = {}};
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < bound.program.state.size(); ++i) {
    bound.state.push_back(make_state(bound.program, i).detach());
    const State& state = bound.program.state[i];
    values(state, {.sizes = program::sizes_of(bound.program.value(state.value), {})},
           bound.state.back());
  }
  return bound;
}

ModelOptions model_options(const Settings& settings, int threads) {
  return {.seed = static_cast<uint64_t>(settings.integer("run.seed")),
          .weights = settings.text("model.weights"),
          .rewrite = rewrite::rewrite_options(settings),
          .threads = threads};
}

ModelOptions model_options(const Settings& settings, int threads, comm::Transport& transport) {
  ModelOptions options = model_options(settings, threads);
  if (!options.weights.empty())
    options.weights =
        checkpoint::find_weights(options.weights, transport,
                                 {.operation = "choice of the weights",
                                  .timeout_seconds = settings.seconds("comm.timeout")});
  return options;
}

std::vector<NamedPlace> named_places(const Model& model) {
  std::vector<NamedPlace> list;
  const Program& program = model.training.program;
  for (size_t i = 0; i < program.state.size(); ++i) {
    const State& state = program.state[i];
    if (state.kind == StateKind::constant || !state.persistent) continue;
    NamedPlace named{.name = state.name,
                     .place = i,
                     .dtype = program.value(state.value).dtype,
                     .sizes = model.whole_sizes(i)};
    list.push_back(named);
    for (const std::string& alias : state.aliases) {
      named.name = alias;
      list.push_back(named);
    }
  }
  return list;
}

}  // namespace renkei::run
