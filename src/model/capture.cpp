#include "model/capture.h"

#include <fmt/format.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "model/op_work.h"
#include "model/random_ops.h"
#include "model/safe_to_cut.h"

namespace renkei::model {
namespace {

using torch::jit::Node;
using torch::jit::Value;

struct NamedTensors {
  std::vector<std::string> names;
  std::vector<torch::Tensor> tensors;
  size_t parameters = 0;  // the rest are buffers
};

NamedTensors state_of(Network& network) {
  NamedTensors state;
  std::unordered_set<const void*> seen;  // two names of one tensor are one
  const auto add = [&](const auto& named) {
    for (const auto& entry : named) {
      if (!entry.value().defined() || !seen.insert(entry.value().unsafeGetTensorImpl()).second)
        continue;
      state.names.push_back(entry.key());
      state.tensors.push_back(entry.value());
    }
  };
  add(network.named_parameters());
  state.parameters = state.tensors.size();
  add(network.named_buffers());
  return state;
}

std::shared_ptr<torch::jit::Graph> trace(Network& network, const Traced& traced,
                                         const torch::Tensor& input, const torch::Tensor& target,
                                         const NamedTensors& state, const std::string& name) {
  const torch::AutoGradMode gradients(network.is_training());
  torch::jit::Stack arguments{input, target};
  for (const torch::Tensor& tensor : state.tensors) arguments.emplace_back(tensor);
  try {
    const auto result = torch::jit::tracer::trace(
        arguments,
        [&](torch::jit::Stack stack) {
          torch::jit::Stack outputs;
          for (const torch::Tensor& output : traced(stack[0].toTensor(), stack[1].toTensor()))
            outputs.emplace_back(output);
          return outputs;
        },
        [](const torch::Tensor&) { return std::string(); });
    return result.first->graph;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw Error(ErrorCode::data,
                fmt::format("{} can't be captured: {}", name, text.substr(0, text.find('\n'))),
                "train it with --plan data, which runs it as it is");
  }
}

bool is_tensor(const Value* value) {
  return value->type()->kind() == c10::TypeKind::TensorType;
}

class Builder {
 public:
  Builder(std::shared_ptr<torch::jit::Graph> code, const NamedTensors& state,
          const std::string& name)
      : state_(state) {
    capture_.code = std::move(code);
    capture_.graph.name = name;
    capture_.parameters = state.tensors;
    const auto inputs = capture_.code->inputs();
    for (size_t i = 0; i < state.tensors.size(); ++i) {
      Value* value = inputs[i + 2];
      capture_.parameter_values.push_back(value);
      parameter_of_[value] = static_cast<int>(i);
      const std::string id = fmt::format("p{}", i);
      capture_.graph.parameters.push_back({.id = id,
                                           .name = state.names[i],
                                           .bytes = static_cast<int64_t>(state.tensors[i].nbytes()),
                                           .trainable = i < state.parameters});
    }
    active_ = {inputs[0], inputs[1]};
  }

  Capture build(int64_t samples) {
    capture_.graph.batch = samples;
    number_drawing_operations();
    const std::vector<NodeRange> inseparable = make_safe_to_cut(*capture_.code, parameter_of_);
    group_nodes(inseparable);
    find_gradients();
    make_ops();
    check_and_sort(capture_.graph, capture_.graph.name);
    capture_.batch_dimension.assign(capture_.graph.values.size(), -1);
    return std::move(capture_);
  }

 private:
  // The numbers are those that KeyedRandom counts when the network runs.
  void number_drawing_operations() {
    int number = 0;
    for (Node* node : capture_.code->nodes())
      if (draws(node->kind().toQualString())) node->i_(number_attribute(), number++);
  }
  static c10::Symbol number_attribute() { return c10::Symbol::attr("renkei_number"); }

  bool is_active(const Node* node) const {
    return std::ranges::any_of(node->inputs(), [&](const Value* v) { return active_.contains(v); });
  }

  // Which node belongs to which op?
  void group_nodes(const std::vector<NodeRange>& inseparable) {
    std::unordered_map<const Node*, size_t> range_of;
    for (size_t i = 0; i < inseparable.size(); ++i)
      for (Node* node : inseparable[i]) range_of[node] = i;
    std::map<size_t, size_t> op_of_range;
    std::vector<Node*> waiting;  // for the next op: they change buffers
    for (Node* node : capture_.code->nodes()) {
      const auto range = range_of.find(node);
      const bool active = is_active(node);
      if (active)
        for (Value* output : node->outputs()) active_.insert(output);
      if (range == range_of.end()) {
        if (writes_to_parameter(node, parameter_of_) && !active) {
          waiting.push_back(node);
          continue;
        }
        const bool carries =
            active && std::ranges::none_of(node->outputs(), [](Value* v) {
              return is_tensor(v) || v->type()->isSubtypeOf(*c10::ListType::ofTensors());
            });
        if (!active || carries || node->kind() == torch::jit::prim::ListConstruct) {
          capture_.common.push_back(node);
          is_common_.insert(node);
          continue;
        }
        if (node->kind() == torch::jit::prim::ListUnpack) {
          const auto producer = op_of_.find(node->input()->node());
          if (producer != op_of_.end()) {
            add(node, producer->second);
            continue;
          }
        }
      }
      size_t op = capture_.nodes.size();
      if (range != range_of.end()) op = op_of_range.try_emplace(range->second, op).first->second;
      if (op == capture_.nodes.size()) capture_.nodes.emplace_back();
      for (Node* first : waiting) add(first, op);
      waiting.clear();
      add(node, op);
    }
    if (capture_.nodes.empty())
      throw Error(ErrorCode::data,
                  fmt::format("{} computes nothing from its input", capture_.graph.name));
    for (Node* node : waiting) add(node, capture_.nodes.size() - 1);
  }

  void add(Node* node, size_t op) {
    capture_.nodes[op].push_back(node);
    op_of_[node] = op;
  }

  // Which values a gradient flows back through.
  void find_gradients() {
    for (size_t i = 0; i < state_.parameters; ++i)
      if (state_.tensors[i].requires_grad()) gradient_.insert(capture_.parameter_values[i]);
    for (Node* node : capture_.code->nodes()) {
      const std::string_view kind = node->kind().toQualString();
      if (kind == "aten::detach" || kind == "aten::argmax") continue;
      if (std::ranges::none_of(node->inputs(), [&](Value* v) { return gradient_.contains(v); }))
        continue;
      for (Value* output : node->outputs()) {
        const auto type = output->type()->cast<c10::TensorType>();
        if (!type || !type->scalarType() || c10::isFloatingType(*type->scalarType()))
          gradient_.insert(output);
      }
    }
  }

  // All that a node uses: values of other ops and parameters, also by way of common nodes.
  void collect_uses(Node* node, std::set<Value*>& values, std::set<int>& parameters) const {
    for (Value* input : node->inputs()) {
      if (const auto found = parameter_of_.find(input); found != parameter_of_.end())
        parameters.insert(found->second);
      else if (is_common_.contains(input->node()))
        collect_uses(input->node(), values, parameters);
      else
        values.insert(input);
    }
  }

  void make_ops() {
    graph::Graph& graph = capture_.graph;
    std::vector<std::set<Value*>> uses(capture_.nodes.size());
    std::vector<std::set<int>> parameters(capture_.nodes.size());
    std::unordered_set<const Value*> crossing;
    for (size_t op = 0; op < capture_.nodes.size(); ++op) {
      for (Node* node : capture_.nodes[op]) collect_uses(node, uses[op], parameters[op]);
      for (Value* value : uses[op])
        if (const auto made = op_of_.find(value->node());
            made == op_of_.end() || made->second != op)
          crossing.insert(value);
    }
    for (Value* output : capture_.code->outputs()) crossing.insert(output);

    const auto inputs = capture_.code->inputs();
    for (size_t i = 0; i < 2; ++i) {
      if (!crossing.contains(inputs[i])) continue;
      graph.inputs.push_back(add_value(inputs[i], i == 0 ? "input" : "target"));
    }
    for (size_t op = 0; op < capture_.nodes.size(); ++op) {
      graph::Op made{.id = std::to_string(op)};
      for (const int parameter : parameters[op]) made.parameters.push_back(parameter);
      for (Value* value : uses[op])
        if (const auto found = value_of_.find(value); found != value_of_.end())
          made.inputs.push_back(found->second);
      std::ranges::sort(made.inputs);
      for (Node* node : capture_.nodes[op]) {
        for (Value* output : node->outputs())
          if (crossing.contains(output)) {
            if (!is_tensor(output))
              throw Error(
                  ErrorCode::data,
                  fmt::format("{} can't be captured: {} hands on a {}, and only tensors "
                              "pass between ops",
                              graph.name, node->kind().toQualString(), output->type()->str()),
                  "train it with --plan data, which runs it as it is");
            made.outputs.push_back(add_value(output, ""));
          }
        if (node->hasAttribute(number_attribute()))
          capture_.drawing.emplace_back(node, node->i(number_attribute()));
        made.kind = node->kind().toUnqualString();
        const Work work = work_of(node);
        made.flops += work.flops;
        made.traffic_bytes += work.traffic_bytes;
        made.saved_bytes += work.made_bytes;
        made.deferred_bytes = made.saved_bytes;
      }
      made.name = name_of(parameters[op], made.kind);
      graph.ops.push_back(std::move(made));
    }
    for (Node* node : capture_.common)
      if (node->hasAttribute(number_attribute()))
        capture_.drawing.emplace_back(node, node->i(number_attribute()));
    for (Value* output : capture_.code->outputs()) {
      const auto found = value_of_.find(output);
      if (found == value_of_.end())
        throw Error(ErrorCode::data,
                    fmt::format("the result of {} does not depend on its input", graph.name));
      graph.outputs.push_back(found->second);
    }
  }

  int add_value(Value* value, const std::string& name) {
    const auto index = static_cast<int>(capture_.graph.values.size());
    value_of_[value] = index;
    capture_.values.push_back(value);
    graph::Value made{
        .id = fmt::format("v{}", index), .gradient = gradient_.contains(value), .name = name};
    const auto type = value->type()->cast<c10::TensorType>();
    const auto sizes = type ? type->sizes().concrete_sizes() : c10::nullopt;
    if (!sizes || !type->scalarType())
      throw Error(ErrorCode::data,
                  fmt::format("{} can't be captured: the shape of what {} gives is not known",
                              capture_.graph.name, value->node()->kind().toQualString()),
                  "train it with --plan data, which runs it as it is");
    made.shape = *sizes;
    made.dtype = c10::toString(*type->scalarType());
    made.bytes = static_cast<int64_t>(c10::elementSize(*type->scalarType()));
    for (const int64_t side : made.shape) made.bytes *= side;
    capture_.graph.values.push_back(std::move(made));
    return index;
  }

  // An op is called after the layer whose parameters it uses.
  std::string name_of(const std::set<int>& parameters, const std::string& kind) const {
    for (const int parameter : parameters) {
      const std::string& name = state_.names[static_cast<size_t>(parameter)];
      const size_t dot = name.rfind('.');
      return dot == std::string::npos ? name : name.substr(0, dot);
    }
    return kind;
  }

  const NamedTensors& state_;
  Capture capture_;
  std::unordered_map<const Value*, int> parameter_of_, value_of_;
  std::unordered_set<const Value*> active_;    // depends on the input
  std::unordered_set<const Value*> gradient_;  // a gradient flows back through it
  std::unordered_set<const Node*> is_common_;
  std::unordered_map<const Node*, size_t> op_of_;
};

}  // namespace

Capture capture(Network& network, const Traced& traced, const torch::Tensor& input,
                const torch::Tensor& target, const std::string& name) {
  const NamedTensors state = state_of(network);
  // Recording computes too, and must leave the running statistics as they are.
  std::vector<torch::Tensor> kept;
  for (size_t i = state.parameters; i < state.tensors.size(); ++i)
    kept.push_back(state.tensors[i].clone());
  auto code = trace(network, traced, input, target, state, name);
  const torch::NoGradGuard no_gradients;
  for (size_t i = 0; i < kept.size(); ++i)
    torch::Tensor(state.tensors[state.parameters + i]).copy_(kept[i]);
  torch::jit::LowerSimpleTuples(code);
  return Builder(std::move(code), state, name).build(input.size(0));
}

void find_batch_dimensions(Capture& capture, const Capture& other) {
  const auto& values = capture.graph.values;
  if (values.size() != other.graph.values.size() ||
      capture.graph.ops.size() != other.graph.ops.size())
    throw Error(ErrorCode::data,
                fmt::format("{} computes something else for {} samples than for {}",
                            capture.graph.name, other.graph.batch, capture.graph.batch),
                "train it with --plan data, which runs it as it is");
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& shape = values[i].shape;
    const auto& other_shape = other.graph.values[i].shape;
    int& dimension = capture.batch_dimension[i];
    dimension = -1;
    for (size_t d = 0; d < shape.size() && shape.size() == other_shape.size(); ++d)
      if (shape[d] != other_shape[d] &&
          shape[d] * other.graph.batch == other_shape[d] * capture.graph.batch)
        dimension = static_cast<int>(d);
    capture.graph.values[i].batch = dimension >= 0;
  }
}

}  // namespace renkei::model
