#include "run/model.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "run/executor.h"

namespace renkei::run {

using program::Program;
using program::State;
using program::StateKind;

namespace {

std::vector<int64_t> shape_of(const Program& program, const State& state) {
  return program::sizes_of(program.value(state.value), {});
}

bool is_trained_state(const Program& program, const State& state) {
  return state.kind == StateKind::parameter && state.trainable &&
         program::is_floating(program.value(state.value).dtype);
}

}  // namespace

bool Model::is_trained(size_t state) const {
  return is_trained_state(training.program, training.program.state[state]);
}

std::vector<torch::Tensor> Model::trained() const {
  std::vector<torch::Tensor> list;
  for (size_t i = 0; i < training.state.size(); ++i)
    if (is_trained(i)) list.push_back(training.state[i]);
  return list;
}

std::vector<torch::Tensor> Model::trained_by_autograd() const {
  std::set<program::ValueId> used_by_torch;
  for (const program::Op& op : training.program.ops)
    if (!op.target.starts_with("renkei.") || op.target.starts_with("renkei.opaque.") ||
        op.target.starts_with("renkei.tp_"))
      for (const program::ValueId value : program::references(op)) used_by_torch.insert(value);
  std::vector<torch::Tensor> list;
  for (size_t i = 0; i < training.state.size(); ++i)
    if (is_trained(i) && used_by_torch.contains(training.program.state[i].value))
      list.push_back(training.state[i]);
  return list;
}

std::vector<torch::Tensor> Model::buffers() const {
  std::vector<torch::Tensor> list;
  for (size_t i = 0; i < training.state.size(); ++i)
    if (training.program.state[i].kind == StateKind::buffer) list.push_back(training.state[i]);
  return list;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (size_t i = 0; i < training.program.state.size(); ++i) {
    if (training.program.state[i].kind != StateKind::parameter) continue;
    int64_t values = 1;
    for (const int64_t side : whole_sizes(i)) values *= side;
    count += values;
  }
  return count;
}

BoundProgram& Model::evaluation_or_throw() {
  if (!evaluation) throw no_evaluation.value_or(Error(ErrorCode::bug, "there is no evaluation"));
  return *evaluation;
}

torch::Tensor make_state(const Program& program, size_t place) {
  const State& state = program.state[place];
  return torch::empty(shape_of(program, state),
                      torch::TensorOptions(run::scalar_type(program.value(state.value).dtype))
                          .requires_grad(is_trained_state(program, state)));
}

std::vector<torch::Tensor> make_placeholders(const Program& program) {
  std::vector<torch::Tensor> tensors;
  for (const State& state : program.state)
    tensors.push_back(
        torch::empty({0}, torch::TensorOptions(run::scalar_type(program.value(state.value).dtype))
                              .requires_grad(is_trained_state(program, state))));
  return tensors;
}

torch::Tensor Model::make_tensor(size_t place) const {
  return make_state(training.program, place).detach();
}

std::vector<int64_t> Model::whole_sizes(size_t place) const {
  return slice(place).sizes;
}

shard::Slice Model::slice(size_t place) const {
  if (!slices.empty()) return slices[place];
  return {.sizes = shape_of(training.program, training.program.state[place])};
}

torch::Tensor Model::make_whole(size_t place) const {
  return torch::empty(whole_sizes(place), training.state[place].options().requires_grad(false));
}

bool Model::has_memory(size_t place) const {
  return training.state[place].sizes() ==
         at::IntArrayRef(shape_of(training.program, training.program.state[place]));
}

void Model::materialise(size_t place) {
  if (has_memory(place)) return;
  const torch::Tensor tensor = make_tensor(place);
  if (!initialise) throw Error(ErrorCode::bug, "a tensor was released and can't be made again");
  initialise(place, tensor);
  training.state[place].set_data(tensor);
}

void Model::release(size_t place) {
  training.state[place].set_data(
      torch::empty({0}, training.state[place].options().requires_grad(false)));
}

std::vector<torch::Tensor> shared_state(const Program& program, const BoundProgram& other,
                                        const std::function<torch::Tensor(size_t)>& make) {
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < other.state.size(); ++i)
    if (other.program.state[i].kind != StateKind::constant)
      by_name[other.program.state[i].name] = i;
  std::vector<torch::Tensor> tensors;
  for (size_t i = 0; i < program.state.size(); ++i) {
    const State& state = program.state[i];
    const auto found = by_name.find(state.name);
    tensors.push_back(found == by_name.end() ? make(i) : other.state[found->second]);
    if (found != by_name.end() &&
        shape_of(program, state) != shape_of(other.program, other.program.state[found->second]))
      throw Error(ErrorCode::data,
                  fmt::format("{} has another shape in training and in evaluation", state.name));
  }
  return tensors;
}

std::vector<BatchInput> inputs_of(const Program& program) {
  std::vector<BatchInput> inputs;
  for (const program::Port& port : program.inputs) {
    const program::Value& value = program.value(port.value);
    BatchInput input{.name = port.name, .dtype = run::scalar_type(value.dtype)};
    const bool fixed = !value.sizes.empty() &&
                       std::all_of(value.sizes.begin() + 1, value.sizes.end(),
                                   [](const program::Size& size) { return size.is_number(); });
    if (fixed) {
      input.shape.emplace();
      for (size_t i = 1; i < value.sizes.size(); ++i)
        input.shape->push_back(value.sizes[i].number());
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<torch::Tensor> batch_inputs(const Program& program,
                                        const std::vector<program::ValueId>& inputs,
                                        const Batch& batch) {
  std::vector<torch::Tensor> tensors;
  for (const program::ValueId value : inputs)
    for (const program::Port& port : program.inputs)
      if (port.value == value) tensors.push_back(batch.input(port.name));
  if (tensors.size() != inputs.size())
    throw Error(ErrorCode::bug, "a part of the network needs more than the batch");
  return tensors;
}

std::vector<torch::Tensor> tensors_at(const std::vector<torch::Tensor>& state,
                                      const std::vector<int>& places) {
  std::vector<torch::Tensor> tensors;
  for (const int place : places) tensors.push_back(state[static_cast<size_t>(place)]);
  return tensors;
}

}  // namespace renkei::run
