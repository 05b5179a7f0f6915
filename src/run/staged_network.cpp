#include "run/staged_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "plan/parameter_sets.h"
#include "plan/plan_file.h"

namespace renkei::run {

StagedNetwork::StagedNetwork(const BoundProgram& network, const plan::Plan& plan)
    : network_(network) {
  const auto parts_of = [](const plan::Stage& stage) {
    return std::max<size_t>(1, stage.segments.size());
  };
  size_t parts = 0;
  for (const plan::Stage& stage : plan.stage_list) parts += parts_of(stage);
  // A function is not cut: it recomputes all at once.
  if (plan.stages == 1 && (parts <= 1 || network.function)) {
    keep_whole();
    return;
  }
  cut_.emplace(network.program);
  plan::check_against(plan, cut_->graph(), "the plan");
  stages_ = plan::stage_values(cut_->graph(), plan::stage_of_ops(plan, cut_->graph()), plan.stages);
  const auto all = plan::stage_values(cut_->graph(), plan::segment_of_ops(plan, cut_->graph()),
                                      static_cast<int>(parts));
  auto next = all.begin();
  for (const plan::Stage& stage : plan.stage_list) {
    const auto end = next + static_cast<ptrdiff_t>(parts_of(stage));
    segments_.emplace_back(next, end);
    next = end;
  }
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
  for (const plan::StageValues& stage : stages_) segments_.push_back({stage});
  outputs_ = cut_->graph().outputs;
}

void StagedNetwork::keep_whole() {
  outputs_.resize(network_.program.outputs.size());
  std::iota(outputs_.begin(), outputs_.end(), 0);
  stages_ = {{.made = outputs_, .loads = true}};
  segments_ = {stages_};
}

std::vector<Segment> StagedNetwork::segments(int stage) const {
  std::vector<Segment> segments;
  for (const plan::StageValues& values : segments_[static_cast<size_t>(stage)])
    segments.push_back({.body = body(values), .made = values.made, .kept = {}});
  for (size_t s = 0; s < segments.size(); ++s)
    for (const int value : segments[s].made)
      segments[s].kept.push_back(
          std::any_of(segments.begin() + static_cast<ptrdiff_t>(s) + 1, segments.end(),
                      [&](const Segment& later) { return later.body.takes(value); }));
  return segments;
}

Body StagedNetwork::body(const plan::StageValues& values) const {
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
