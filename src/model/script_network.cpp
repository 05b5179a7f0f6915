#include "model/script_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "model/blank.h"

namespace renkei::model {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.ends_with(separator)) parts.emplace_back();  // getline leaves an empty end out
  return parts;
}

int64_t positive_number(const std::string& word, const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 1)
    throw Error(ErrorCode::usage, fmt::format("'{}' is not an input shape: '{}'", text, word),
                "write 3x224x224, or 128<30522 for 128 token ids below 30522; commas between "
                "several inputs");
  return number;
}

// The first line of what Torch says, without its stack of calls.
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  const size_t runtime = text.rfind("RuntimeError: ");
  if (runtime != std::string::npos) text = text.substr(runtime + 14);
  return text.substr(0, text.find('\n'));
}

torch::jit::Module load_script(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw Error(ErrorCode::usage, fmt::format("there is no model file {}", file.string()),
                "renkei model list shows the built-in networks");
  try {
    const OrdinaryTensors as_in_the_file;
    return torch::jit::load(file.string());
  } catch (const c10::Error&) {
    throw Error(ErrorCode::data,
                fmt::format("{} is not a TorchScript file, it holds no code", file.string()),
                "make one in Python: torch.jit.script(model).save(FILE); a file of weights alone "
                "goes to model.weights");
  }
}

// The first operation of the model that no gradient passes, if there is one that is known for it.
std::optional<std::string> gradient_stopper(const torch::jit::Module& script) {
  auto graph = script.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  std::optional<std::string> found;
  const std::vector<std::string> stoppers{"aten::detach", "aten::detach_", "aten::argmax",
                                          "aten::sign",   "aten::round",   "aten::floor",
                                          "aten::topk",   "aten::item"};
  const std::function<void(torch::jit::Block*)> visit = [&](torch::jit::Block* block) {
    for (torch::jit::Node* node : block->nodes()) {
      const std::string kind = node->kind().toQualString();
      if (!found && (std::ranges::count(stoppers, kind) > 0 || kind.starts_with("quantized::")))
        found = kind;
      for (torch::jit::Block* inner : node->blocks()) visit(inner);
    }
  };
  visit(graph->block());
  return found;
}

// All tensors of a model's answer; of a dictionary, those named "loss", "out" or "logits" first.
std::vector<torch::Tensor> tensors_of(const torch::IValue& value) {
  std::vector<torch::Tensor> tensors;
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const torch::IValue& element : value.toTupleRef().elements())
      for (const torch::Tensor& tensor : tensors_of(element)) tensors.push_back(tensor);
  } else if (value.isList()) {
    for (const torch::IValue& element : value.toListRef())
      for (const torch::Tensor& tensor : tensors_of(element)) tensors.push_back(tensor);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      const std::string name = entry.key().isString() ? entry.key().toStringRef() : "";
      const bool first = name == "loss" || name == "out" || name == "logits";
      for (const torch::Tensor& tensor : tensors_of(entry.value()))
        tensors.insert(first ? tensors.begin() : tensors.end(), tensor);
    }
  }
  return tensors;
}

// The module at the end of a path of names, made where it is missing.
std::shared_ptr<torch::nn::Module> descend(torch::nn::Module& root,
                                           const std::vector<std::string>& path) {
  std::shared_ptr<torch::nn::Module> at;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    torch::nn::Module& parent = at ? *at : root;
    const auto children = parent.named_children();
    const auto* known = children.find(path[i]);
    at = known ? *known : parent.register_module(path[i], std::make_shared<torch::nn::Module>());
  }
  return at;
}

}  // namespace

std::vector<ScriptInput> parse_input_shapes(const std::string& text) {
  std::vector<ScriptInput> inputs;
  for (const std::string& part : cut(text, ',')) {
    ScriptInput input;
    const size_t less = part.find('<');
    if (less != std::string::npos) input.below = positive_number(part.substr(less + 1), text);
    for (const std::string& side : cut(part.substr(0, less), 'x'))
      input.shape.push_back(positive_number(side, text));
    if (input.shape.empty()) positive_number("", text);
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) positive_number("", text);
  return inputs;
}

ScriptNetwork::ScriptNetwork(const ScriptOptions& options)
    : options_(options), script_(load_script(options.file)) {
  if (!script_.find_method("forward"))
    throw Error(ErrorCode::data, fmt::format("{} has no forward method", options_.file.string()),
                "script or trace a torch.nn.Module that has one");
  tie_weights();
  take_parameters();
  try_out();
}

// Two names of one tensor come out of a file as two tensors in the same memory: make them one
// again, or each would be moved and trained for itself.
void ScriptNetwork::tie_weights() {
  std::map<std::pair<const void*, std::vector<int64_t>>, torch::Tensor> seen;
  for (torch::jit::Module module : script_.modules())
    for (const auto& named : module.named_parameters(/*recurse=*/false)) {
      const torch::Tensor& tensor = named.value;
      if (tensor.numel() == 0 || tensor.is_meta()) continue;
      const auto [place, is_new] =
          seen.try_emplace({tensor.data_ptr(), tensor.sizes().vec()}, tensor);
      if (!is_new && !place->second.is_same(tensor)) module.setattr(named.name, place->second);
    }
}

void ScriptNetwork::take_parameters() {
  std::vector<const void*> taken;
  for (const auto& named : script_.named_parameters()) {
    const torch::Tensor& tensor = named.value;
    if (std::ranges::count(taken, tensor.unsafeGetTensorImpl()) > 0) continue;
    taken.push_back(tensor.unsafeGetTensorImpl());
    if (tensor.is_quantized() || tensor.scalar_type() != torch::kFloat32)
      throw Error(
          ErrorCode::data,
          fmt::format("the parameter {} of {} is {}, and only float32 can be trained", named.name,
                      options_.file.string(), torch::toString(tensor.scalar_type())),
          "convert the model in Python: model.float()");
    if (tensor.is_meta() && !BlankTensors::active())
      throw Error(ErrorCode::data,
                  fmt::format("the parameter {} of {} has no values: the model was made on the "
                              "device meta",
                              named.name, options_.file.string()),
                  "it can be planned for another machine (renkei plan --model FILE); to train or "
                  "measure it, save it with values");
    const auto path = cut(named.name, '.');
    const auto parent = descend(*this, path);
    torch::nn::Module& owner = parent ? *parent : *this;
    // What Python froze with requires_grad = False stays as it is.
    if (tensor.requires_grad())
      owner.register_parameter(path.back(), tensor);
    else
      owner.register_buffer(path.back(), tensor);
  }
  for (const auto& named : script_.named_buffers()) {
    if (std::ranges::count(taken, named.value.unsafeGetTensorImpl()) > 0) continue;
    taken.push_back(named.value.unsafeGetTensorImpl());
    const auto path = cut(named.name, '.');
    const auto parent = descend(*this, path);
    (parent ? *parent : static_cast<torch::nn::Module&>(*this))
        .register_buffer(path.back(), named.value);
  }
  if (parameters().empty())
    throw Error(ErrorCode::data,
                fmt::format("{} has no parameters that can be trained", options_.file.string()),
                "torch.jit.freeze and optimize_for_inference turn parameters into constants, and "
                "requires_grad = False fixes them: save the model before that");
}

void ScriptNetwork::try_out() {
  std::vector<int64_t> shape = input_shape();
  shape.insert(shape.begin(), 2);
  const torch::Tensor input = torch::zeros(shape), labels = torch::zeros({2}, torch::kInt64);
  const size_t arguments = script_.get_method("forward").function().getSchema().arguments().size();
  const bool own = options_.objective == Objective::own_loss;
  if (arguments - 1 < options_.inputs.size())
    throw Error(ErrorCode::usage,
                fmt::format("{} takes {} inputs, but model.input_shape has {}",
                            options_.file.string(), arguments - 1, options_.inputs.size()),
                "give one shape per input, with commas between");
  if (own && takes_target() && options_.classes == 0)
    throw Error(ErrorCode::usage,
                "the model computes its loss from labels, but how many classes there are is not "
                "known",
                "add --set model.classes=N");
  train(false);
  std::vector<torch::Tensor> answer;
  try {
    answer = tensors_of(run(input, own && takes_target() ? &labels : nullptr));
  } catch (const std::exception& error) {  // the interpreter's are not all c10::Errors
    throw Error(ErrorCode::usage,
                fmt::format("{} failed on an input of shape {}: {}", options_.file.string(),
                            fmt::join(shape, " × "), first_line(error)),
                "set model.input_shape, such as 3x224x224, without the batch");
  }
  train(true);
  if (answer.empty())
    throw Error(ErrorCode::data,
                fmt::format("{} returns no tensor, so there is no loss", options_.file.string()),
                "return a tensor, a tuple, a list or a dictionary of tensors");
  if (!answer[0].requires_grad()) {
    const auto stopper = gradient_stopper(script_);
    throw Error(
        ErrorCode::data,
        fmt::format("no gradient gets from the output of {} to its parameters{}",
                    options_.file.string(), stopper ? fmt::format(": {} stops it", *stopper) : ""),
        "return the scores themselves, computed without detach and torch.no_grad");
  }
  if (own) {
    outputs_ = random_sample().classes;
    return;
  }
  if (answer[0].dim() < 2 || answer[0].size(0) != 2)
    throw Error(ErrorCode::data,
                fmt::format("{} gives an output of shape {} for 2 samples, and the batch must be "
                            "its first dimension",
                            options_.file.string(), fmt::join(answer[0].sizes(), " × ")),
                "return one row per sample, or let the model compute its loss: train.loss=model");
  output_shape_.assign(answer[0].sizes().begin() + 1, answer[0].sizes().end());
  outputs_ = output_shape_[0];
}

bool ScriptNetwork::takes_target() const {
  // One for the module itself.
  return script_.get_method("forward").function().getSchema().arguments().size() >
         options_.inputs.size() + 1;
}

std::vector<int64_t> ScriptNetwork::input_shape() const {
  if (options_.inputs.size() == 1) return options_.inputs[0].shape;
  int64_t size = 0;
  for (const ScriptInput& input : options_.inputs) size += product(input.shape);
  return {size};
}

std::vector<torch::Tensor> ScriptNetwork::split(const torch::Tensor& input) const {
  std::vector<torch::Tensor> parts;
  const torch::Tensor rows = input.flatten(1);
  int64_t begin = 0;
  for (const ScriptInput& wanted : options_.inputs) {
    std::vector<int64_t> shape = wanted.shape;
    shape.insert(shape.begin(), input.size(0));
    const int64_t size = product(wanted.shape);
    const torch::Tensor part = rows.narrow(1, begin, size).reshape(shape);
    parts.push_back(wanted.below > 0 ? part.to(torch::kInt64) : part);
    begin += size;
  }
  return parts;
}

torch::IValue ScriptNetwork::run(const torch::Tensor& input, const torch::Tensor* target) {
  // As eager Python would: the optimising executor first profiles, then changes dropout and sums.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  std::vector<torch::IValue> arguments;
  for (const torch::Tensor& part : split(input)) arguments.emplace_back(part);
  if (target) arguments.emplace_back(*target);
  return script_.forward(arguments);
}

Network::Outputs ScriptNetwork::forward_all(torch::Tensor input) {
  const std::vector<torch::Tensor> tensors = tensors_of(run(input, nullptr));
  Outputs outputs{
      .main = tensors.at(0), .auxiliary = {}, .auxiliary_weight = options_.auxiliary_weight};
  if (!is_training()) return outputs;
  // Heads that classify too; features or attention weights have other shapes.
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].sizes() == outputs.main.sizes() && tensors[i].requires_grad())
      outputs.auxiliary.push_back(tensors[i]);
  return outputs;
}

torch::Tensor ScriptNetwork::own_loss(const torch::Tensor& input, const torch::Tensor& target) {
  const auto tensors = tensors_of(run(input, takes_target() ? &target : nullptr));
  const torch::Tensor& loss = tensors.at(0);
  if (loss.numel() == 1) return loss.sum() * input.size(0);
  if (loss.dim() == 1 && loss.size(0) == input.size(0)) return loss.sum();
  throw Error(ErrorCode::data,
              fmt::format("{} gives an output of shape {} as its loss", options_.file.string(),
                          fmt::join(loss.sizes(), " × ")),
              "return one number, the mean over the samples, or one per sample");
}

void ScriptNetwork::train(bool on) {
  Network::train(on);
  script_.train(on);
}

RandomSample ScriptNetwork::random_sample() const {
  RandomSample sample;
  for (const ScriptInput& input : options_.inputs)
    sample.inputs.push_back({.size = product(input.shape), .below = input.below});
  if (options_.objective == Objective::own_loss) {
    sample.classes = std::max<int64_t>(options_.classes, 2);
  } else if (options_.objective == Objective::regression) {
    sample.target = RandomTarget::numbers;
    sample.target_size = product(output_shape_);
  } else {
    sample.classes = outputs_;
    if (output_shape_.size() > 1) {
      sample.target = RandomTarget::label_per_position;
      sample.target_size = product(output_shape_) / outputs_;
    }
  }
  return sample;
}

std::shared_ptr<Network> make_script_network(const Settings& settings,
                                             const std::filesystem::path& file) {
  std::string shapes = settings.text("model.input_shape");
  if (shapes == "auto") {
    const int64_t side = settings.integer_unless_auto("model.image_size").value_or(224);
    shapes = fmt::format("3x{}x{}", side, side);
  }
  return std::make_shared<ScriptNetwork>(
      ScriptOptions{.file = file,
                    .inputs = parse_input_shapes(shapes),
                    .classes = settings.integer_unless_auto("model.classes").value_or(0),
                    .auxiliary_weight = settings.real("model.auxiliary_weight"),
                    .objective = chosen_objective(settings).value_or(Objective::classification)});
}

}  // namespace renkei::model
