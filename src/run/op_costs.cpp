#include "run/op_costs.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "run/cut_program.h"
#include "run/op_memory.h"

namespace renkei::run {
namespace {

struct OpCost {
  double forward = 1e9, backward_input = 1e9, backward_weight = 1e9;
};

// Gradients of parameters go to memory of our own for as long as this exists, as in training.
class Gradients {
 public:
  Gradients(const std::vector<torch::Tensor>& tensors, GradientSink& sink) : sink_(sink) {
    for (const torch::Tensor& tensor : tensors) {
      if (!tensor.requires_grad()) continue;
      parameters_.push_back(tensor);
      memory_.push_back(torch::zeros_like(tensor, torch::TensorOptions().requires_grad(false)));
      parameters_.back().mutable_grad() = memory_.back();
      if (tensor.scalar_type() == torch::kFloat32)
        sink_.add(tensor, memory_.back().data_ptr<float>());
    }
  }
  ~Gradients() {
    for (torch::Tensor& parameter : parameters_) {
      parameter.mutable_grad().reset();
      sink_.remove(parameter);
    }
  }

 private:
  GradientSink& sink_;
  std::vector<torch::Tensor> parameters_, memory_;
};

// State that an op needs, in memory for as long as this exists.
class StateOfOp {
 public:
  StateOfOp(Model& model, const std::vector<int>& places) : model_(model) {
    for (const int place : places) {
      const auto i = static_cast<size_t>(place);
      if (model.has_memory(i)) continue;
      model.materialise(i);
      made_.push_back(i);
    }
  }
  ~StateOfOp() {
    for (const size_t place : made_) model_.release(place);
  }

 private:
  Model& model_;
  std::vector<size_t> made_;
};

class Measurement {
 public:
  Measurement(const CutProgram& program, Model& model, int64_t samples,
              const OpCostOptions& options)
      : program_(program),
        model_(model),
        samples_(samples),
        options_(options),
        values_(program.graph().values.size()) {
    context_.winograd = options.compute.winograd;
    context_.dense = options.compute.dense;
    context_.products = options.compute.products;
    context_.sink.direct = options.compute.direct_gradients;
    for (const int input : program.graph().inputs)
      values_[static_cast<size_t>(input)] = samples_of(input);
    // The last user of a value is the last who needs it.
    last_use_.resize(values_.size(), -1);
    for (size_t op = 0; op < program.graph().ops.size(); ++op)
      for (const int input : program.graph().ops[op].inputs)
        last_use_[static_cast<size_t>(input)] = static_cast<int>(op);
  }

  ExecutionContext& context() { return context_; }

  OpCost measure(int op, OpMemory* memory = nullptr) {
    const graph::Op& known = program_.graph().ops[static_cast<size_t>(op)];
    const Executor executor = program_.executor({op}, known.outputs);
    const StateOfOp in_memory(model_, executor.state());
    std::vector<torch::Tensor> state;
    for (const torch::Tensor& tensor : tensors_at(model_.training.state, executor.state()))
      state.push_back(tensor.requires_grad() ? tensor : tensor.clone());
    const Gradients gradients(state, context_.sink);
    if (memory) memory->measure(op, executor, inputs_of(executor), state);
    OpCost cost;
    std::vector<torch::Tensor> outputs;
    for (int i = 0; i <= options_.repetitions; ++i) {  // the first makes kernels and memory ready
      outputs.clear();
      OpCost once = run_once(executor, state, outputs);
      if (i == 0) continue;
      cost.forward = std::min(cost.forward, once.forward);
      cost.backward_input = std::min(cost.backward_input, once.backward_input);
      cost.backward_weight = std::min(cost.backward_weight, once.backward_weight);
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      values_[static_cast<size_t>(known.outputs[i])] = outputs[i].detach();
    for (const int input : known.inputs)
      if (last_use_[static_cast<size_t>(input)] == op) values_[static_cast<size_t>(input)].reset();
    return cost;
  }

 private:
  torch::Tensor samples_of(int input) const {
    const auto given = options_.inputs.find(std::string(program_.input_name(input)));
    const std::vector<int64_t> sizes = program_.shape(input, samples_);
    if (given == options_.inputs.end()) return torch::zeros(sizes, program_.dtype(input));
    if (given->second.sizes() == at::IntArrayRef(sizes)) return given->second;
    if (given->second.dim() == 0 || given->second.size(0) == 0)
      return torch::zeros(sizes, program_.dtype(input));
    return given->second.index_select(0, torch::arange(samples_).remainder(given->second.size(0)));
  }

  std::vector<torch::Tensor> inputs_of(const Executor& executor) const {
    std::vector<torch::Tensor> inputs;
    for (const int input : program_.inputs_of(executor)) {
      const auto i = static_cast<size_t>(input);
      torch::Tensor leaf = values_[i].detach();
      inputs.push_back(leaf.requires_grad_(program_.graph().values[i].gradient));
    }
    return inputs;
  }

  OpCost run_once(const Executor& executor, const std::vector<torch::Tensor>& state,
                  std::vector<torch::Tensor>& outputs) {
    const std::vector<torch::Tensor> inputs = inputs_of(executor);
    OpCost cost;
    double begin = now_seconds();
    outputs = executor.run(inputs, state, samples_, context_);
    cost.forward = now_seconds() - begin;

    std::vector<torch::Tensor> roots, seeds;
    for (const torch::Tensor& output : outputs)
      if (output.requires_grad()) {
        roots.push_back(output);
        seeds.push_back(torch::ones_like(output));
      }
    cost.backward_input = cost.backward_weight = 0;
    if (roots.empty()) return cost;
    context_.sink.begin_step();
    DeferredGradients put_off;
    context_.deferred = &put_off;
    begin = now_seconds();
    torch::autograd::backward(roots, seeds);
    cost.backward_input = now_seconds() - begin;
    context_.deferred = nullptr;
    begin = now_seconds();
    put_off.run();
    cost.backward_weight = now_seconds() - begin;
    return cost;
  }

  const CutProgram& program_;
  Model& model_;
  int64_t samples_;
  const OpCostOptions& options_;
  ExecutionContext context_;
  std::vector<torch::Tensor> values_;
  std::vector<int> last_use_;
};

// What would remain with no samples, by a line through two measurements.
double fixed_part(double less, double more, double few, double many) {
  if (many <= few) return 0;
  const double per_sample = (more - less) / (many - few);
  return std::clamp(less - per_sample * few, 0.0, more);
}

}  // namespace

graph::Graph measured_graph(Model& model, const OpCostOptions& options) {
  const int64_t many = std::max<int64_t>(2, options.samples);
  const int64_t few = many > 3 ? many / 2 : many + 1;
  const CutProgram program(model.training.program, many);
  const auto ops = static_cast<int64_t>(program.graph().ops.size());

  Measurement first(program, model, many, options), second(program, model, few, options);
  OpMemory memory(program, many, first.context());
  graph::Graph graph = program.graph();
  graph.estimated = false;
  for (int op = 0; op < ops; ++op) {
    const OpCost a = first.measure(op, &memory), b = second.measure(op);
    graph::Op& known = graph.ops[static_cast<size_t>(op)];
    const double backward = a.backward_input + a.backward_weight;
    known.forward_seconds = a.forward * options.slowdown;
    known.backward_seconds = backward * options.slowdown;
    const auto fixed = [&](double of_many, double of_few) {
      const double part =
          few < many
              ? fixed_part(of_few, of_many, static_cast<double>(few), static_cast<double>(many))
              : fixed_part(of_many, of_few, static_cast<double>(many), static_cast<double>(few));
      return std::min(part, of_many) * options.slowdown;
    };
    known.forward_fixed_seconds = fixed(a.forward, b.forward);
    known.backward_fixed_seconds = fixed(backward, b.backward_input + b.backward_weight);
    known.backward_input_share = backward > 0 ? a.backward_input / backward : 1;
    if (options.progress) options.progress(op + 1, ops);
  }
  memory.write_to(graph.ops);
  check_and_sort(graph, graph.name);
  return graph;
}

}  // namespace renkei::run
