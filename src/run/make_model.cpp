#include "run/make_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "capture/safetensors.h"
#include "capture/weights_file.h"
#include "networks/initial_values.h"

namespace renkei::run {
namespace {

using capture::NamedTensors;
using capture::StoredTensor;
using program::Program;
using program::State;
using program::StateKind;

program::DType program_type(torch::ScalarType type) {
  for (const program::DType dtype : program::kAllDTypes)
    if (run::scalar_type(dtype) == type) return dtype;
  throw Error(ErrorCode::bug, "a tensor has a type that programs do not know");
}

void read_into(const torch::Tensor& tensor, const StoredTensor& stored, const State& state,
               const std::string& source) {
  if (!stored.has_values())
    throw Error(ErrorCode::data,
                fmt::format("{} has no values for {}: the model was made on the device meta",
                            source, state.name),
                "it can be planned for another machine (renkei plan --model FILE); to train or "
                "measure it, export it with values");
  if (at::IntArrayRef(stored.sizes) != tensor.sizes())
    throw Error(ErrorCode::data,
                fmt::format("{} does not fit the network: {} is {} in the file and {} in the "
                            "network",
                            source, state.name, fmt::join(stored.sizes, " × "),
                            fmt::join(tensor.sizes(), " × ")),
                "check model.name and the settings that change its shape, such as model.classes");
  const torch::NoGradGuard no_grad;
  torch::Tensor read = run::scalar_type(stored.dtype) == tensor.scalar_type()
                           ? tensor
                           : torch::empty(tensor.sizes(), run::scalar_type(stored.dtype));
  stored.read(0, {static_cast<char*>(read.data_ptr()), static_cast<size_t>(read.nbytes())});
  if (!read.is_same(tensor)) tensor.copy_(read);
}

void fill(const torch::Tensor& tensor, const State& state, const ModelOptions& options) {
  const networks::InitialPart part{
      .seed = options.seed, .name = state.name, .initial = state.initial};
  const auto count = static_cast<size_t>(tensor.numel());
  if (tensor.scalar_type() == torch::kInt64)
    networks::fill_initial(std::span(tensor.data_ptr<int64_t>(), count), part);
  else
    networks::fill_initial(std::span(tensor.data_ptr<float>(), count), part, options.threads);
}

void set_values(const BoundProgram& bound, const NamedTensors& values,
                const ModelOptions& options) {
  for (size_t i = 0; i < bound.state.size(); ++i) {
    const State& state = bound.program.state[i];
    if (const auto found = values.find(state.name); found != values.end())
      read_into(bound.state[i], found->second, state, bound.program.name);
    else
      fill(bound.state[i], state, options);
  }
}

// Names and shapes must be those of the network.
void load_weights(const BoundProgram& bound, const std::filesystem::path& file) {
  NamedTensors given = capture::read_weights_file(file);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::data,
                fmt::format("{} does not fit the network: {}", file.string(), what),
                "check model.name and the settings that change its shape, such as model.classes");
  };
  for (size_t i = 0; i < bound.state.size(); ++i) {
    const State& state = bound.program.state[i];
    if (state.kind == StateKind::constant || !state.persistent) continue;
    auto found = given.find(state.name);
    for (const std::string& alias : state.aliases)
      if (found == given.end()) found = given.find(alias);
    if (found == given.end()) refuse(fmt::format("it has no {}", state.name));
    read_into(bound.state[i], found->second, state, file.string());
    given.erase(state.name);
    for (const std::string& alias : state.aliases) given.erase(alias);
  }
  if (!given.empty()) refuse(fmt::format("the network has no {}", given.begin()->first));
}

}  // namespace

Model make_model(const capture::OpenNetwork& open, const networks::LossOptions& loss,
                 const ModelOptions& options) {
  capture::Programs programs = capture::programs_of(open, loss);
  Model model;
  model.training.state = make_state(programs.training);
  model.training.program = std::move(programs.training);
  set_values(model.training, open.values, options);
  if (!options.weights.empty()) load_weights(model.training, options.weights);
  model.no_evaluation = programs.no_evaluation;
  if (programs.evaluation) {
    rewrite::RewriteOptions evaluating = options.rewrite;
    evaluating.training = false;
    BoundProgram evaluation{.program = rewrite::rewrite(*programs.evaluation, evaluating).program,
                            .state = {}};
    evaluation.state = shared_state(evaluation.program, model.training, [&](size_t i) {
      const State& state = evaluation.program.state[i];
      torch::Tensor tensor = make_state(evaluation.program, i);
      if (const auto found = open.values.find(state.name); found != open.values.end())
        read_into(tensor, found->second, state, open.network.training.name);
      else
        fill(tensor, state, options);
      return tensor;
    });
    model.evaluation = std::move(evaluation);
  }
  model.training.program = rewrite::rewrite(model.training.program, options.rewrite).program;
  return model;
}

ModelOptions model_options(const Settings& settings, int threads) {
  return {.seed = static_cast<uint64_t>(settings.integer("run.seed")),
          .weights = settings.text("model.weights"),
          .rewrite = rewrite::rewrite_options(settings),
          .threads = threads};
}

void save_weights(const Model& model, const std::filesystem::path& file) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_state(model)) {
    const auto bytes = tensor.detach().contiguous();
    const auto dtype = program_type(bytes.scalar_type());
    tensors[name] = {.dtype = dtype,
                     .sizes = bytes.sizes().vec(),
                     .read = [bytes](int64_t begin, std::span<char> into) {
                       std::memcpy(into.data(), static_cast<const char*>(bytes.data_ptr()) + begin,
                                   into.size());
                     }};
  }
  capture::write_safetensors(file.string(), tensors, {{"format", "pt"}});
}

std::vector<std::pair<std::string, torch::Tensor>> named_state(const Model& model) {
  std::vector<std::pair<std::string, torch::Tensor>> list;
  for (size_t i = 0; i < model.training.state.size(); ++i) {
    const State& state = model.training.program.state[i];
    if (state.kind == StateKind::constant || !state.persistent) continue;
    list.emplace_back(state.name, model.training.state[i]);
    for (const std::string& alias : state.aliases)
      list.emplace_back(alias, model.training.state[i]);
  }
  return list;
}

}  // namespace renkei::run
