#include "run/staged_network.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "plan/parameter_sets.h"
#include "plan/plan_file.h"

namespace renkei::run {

StagedNetwork::StagedNetwork(const BoundProgram& network, const plan::Plan& plan)
    : network_(network) {
  if (plan.stages == 1) {
    keep_whole();
    return;
  }
  cut_.emplace(network.program);
  plan::check_against(plan, cut_->graph(), "the plan");
  stages_ = plan::stage_values(cut_->graph(), plan::stage_of_ops(plan, cut_->graph()), plan.stages);
  outputs_ = cut_->graph().outputs;
  for (size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].loads && !plan.stage_list[s].loads)
      throw Error(ErrorCode::data,
                  fmt::format("the plan: stage {} uses samples, but does not load them", s),
                  "set \"loads\": true there");
}

StagedNetwork::StagedNetwork(const BoundProgram& network,
                             const std::vector<std::vector<int>>& stages_of, int stages)
    : network_(network) {
  if (stages == 1) {
    keep_whole();
    return;
  }
  cut_.emplace(network.program);
  stages_ = plan::stage_values(cut_->graph(), plan::stages_by_parameters(cut_->graph(), stages_of),
                               stages);
  outputs_ = cut_->graph().outputs;
}

void StagedNetwork::keep_whole() {
  outputs_.resize(network_.program.outputs.size());
  std::iota(outputs_.begin(), outputs_.end(), 0);
  stages_ = {{.made = outputs_, .loads = true}};
}

Body StagedNetwork::body(int stage) const {
  const program::Program& program = network_.program;
  std::vector<Body::Input> inputs;
  if (network_.function) {
    if (cut_) throw Error(ErrorCode::usage, "this network can't be cut into stages");
    for (const program::Port& port : program.inputs) inputs.push_back({.field = port.name});
    return {network_.function, std::move(inputs), network_.state};
  }
  if (!cut_) {
    Executor executor(program, whole(program));
    for (const program::ValueId value : executor.inputs())
      for (const program::Port& port : program.inputs)
        if (port.value == value) inputs.push_back({.field = port.name});
    return {std::move(executor), std::move(inputs), network_.state};
  }
  const plan::StageValues& values = this->stage(stage);
  Executor executor = cut_->executor(values.ops, values.made);
  for (const int value : cut_->inputs_of(executor)) {
    const std::string_view name = cut_->input_name(value);
    inputs.push_back(name.empty() ? Body::Input{.value = value}
                                  : Body::Input{.field = std::string(name)});
  }
  return {std::move(executor), std::move(inputs), network_.state};
}

std::vector<std::vector<int>> StagedNetwork::stages_of_state() const {
  if (!cut_) return std::vector<std::vector<int>>(network_.state.size(), {0});
  return plan::stages_of_parameters(cut_->graph(), stages_, network_.state.size());
}

std::vector<bool> StagedNetwork::loads() const {
  std::vector<bool> list;
  for (const plan::StageValues& stage : stages_) list.push_back(stage.loads);
  return list;
}

}  // namespace renkei::run
