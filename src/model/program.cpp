#include "model/program.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "model/random_ops.h"

namespace renkei::model {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// The common nodes that `node` needs.
void add_needed(const Node* node, const std::unordered_set<const Node*>& common,
                std::unordered_set<const Node*>& needed) {
  for (const Value* input : node->inputs())
    if (common.contains(input->node()) && needed.insert(input->node()).second)
      add_needed(input->node(), common, needed);
}

}  // namespace

Program::Program(const Capture& capture, const std::vector<graph::OpIndex>& ops,
                 std::vector<graph::ValueIndex> outputs)
    : outputs_(std::move(outputs)) {
  const std::unordered_set<const Node*> common(capture.common.begin(), capture.common.end());
  std::unordered_set<const Node*> needed;
  for (const graph::OpIndex op : ops)
    for (const Node* node : capture.nodes[static_cast<size_t>(op)]) {
      needed.insert(node);
      add_needed(node, common, needed);
    }
  std::unordered_map<const Value*, int> value_of, parameter_of;
  for (size_t i = 0; i < capture.values.size(); ++i)
    value_of[capture.values[i]] = static_cast<int>(i);
  for (size_t i = 0; i < capture.parameter_values.size(); ++i)
    parameter_of[capture.parameter_values[i]] = static_cast<int>(i);
  const std::unordered_map<const Node*, int> drawing(capture.drawing.begin(),
                                                     capture.drawing.end());

  // What comes from outside: inputs first, then parameters.
  for (const Node* node : capture.code->nodes()) {
    if (!needed.contains(node)) continue;
    for (const Value* input : node->inputs()) {
      if (const auto p = parameter_of.find(input); p != parameter_of.end())
        parameters_.push_back(p->second);
      else if (!needed.contains(input->node()))
        inputs_.push_back(value_of.at(input));
    }
  }
  for (auto* list : {&inputs_, &parameters_}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }

  auto part = std::make_shared<torch::jit::Graph>();
  std::unordered_map<Value*, Value*> made;
  const auto add_input = [&](Value* value) {
    made[value] = part->addInput()->setType(c10::TensorType::get());
  };
  for (const int input : inputs_) add_input(capture.values[static_cast<size_t>(input)]);
  for (const int parameter : parameters_)
    add_input(capture.parameter_values[static_cast<size_t>(parameter)]);
  for (Node* node : capture.code->nodes()) {
    if (!needed.contains(node)) continue;
    if (const auto number = drawing.find(node); number != drawing.end()) {
      Value* constant = part->insertConstant(int64_t{number->second});
      part->appendNode(part->create(c10::Symbol::fromQualString(kRandomOp), {constant}, 0));
    }
    Node* copy = part->createClone(node, [&](Value* value) { return made.at(value); });
    part->appendNode(copy);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      made[node->output(i)] = copy->output(i);
      // Shapes of the recording mean nothing to the interpreter.
      if (copy->output(i)->type()->kind() == c10::TypeKind::TensorType)
        copy->output(i)->setType(c10::TensorType::get());
    }
  }
  for (const int output : outputs_)
    part->registerOutput(made.at(capture.values[static_cast<size_t>(output)]));
  code_ = torch::jit::Code(part, "part");
}

std::vector<torch::Tensor> Program::run(const std::vector<torch::Tensor>& inputs,
                                        const std::vector<torch::Tensor>& parameters) const {
  torch::jit::Stack stack;
  stack.reserve(inputs.size() + parameters.size());
  for (const auto* list : {&inputs, &parameters})
    for (const torch::Tensor& tensor : *list) stack.emplace_back(tensor);
  torch::jit::InterpreterState(code_).run(stack);
  std::vector<torch::Tensor> outputs;
  for (torch::jit::IValue& value : stack) outputs.push_back(std::move(value).toTensor());
  return outputs;
}

}  // namespace renkei::model
