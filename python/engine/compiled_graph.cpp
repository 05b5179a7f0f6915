#include "compiled_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "capture/pt2.h"
#include "program/effects.h"
#include "rewrite/rewrite.h"
#include "run/compute_options.h"
#include "run/memory.h"
#include "run/settings.h"

namespace renkei::python {
namespace {

// Kernels keep its address for backward, which may come when the graph is gone, so it is never
// freed; one for each thread, because it says what is being drawn.
run::ExecutionContext& context_of_this_thread(const run::ComputeOptions& options) {
  static thread_local auto* context = new run::ExecutionContext;
  context->draws_as_torch = true;
  context->winograd = options.winograd;
  context->dense = options.dense;
  context->products = options.products;
  return *context;
}

}  // namespace

CompiledGraph::CompiledGraph(const Source& source, Use use,
                             const std::map<std::string, std::string>& given) {
  Settings settings;
  rewrite::declare_rewrite_settings(settings);
  run::declare_compute_settings(settings);
  for (const auto& [name, value] : given) settings.set(name, value, "options");
  run::install_memory_pools();
  program::Program program =
      capture::read_exported_json(source.text, source.tied, "the captured graph");
  rewrite::RewriteOptions options = rewrite::rewrite_options(settings);
  options.training = use.training;
  options.inputs_need_gradients = use.inputs_need_gradients;
  // Kernels of ours draw other numbers than Torch's.
  options.dropout = false;
  if (std::ranges::any_of(program.ops, program::draws)) options.residuals = false;
  rewrite::Rewritten rewritten = rewrite::rewrite(program, options);
  for (const rewrite::Applied& applied : rewritten.applied)
    if (applied.why_not.empty())
      rewrites_.push_back(fmt::format("{}: {}", applied.where, applied.rewrite));
  program = std::move(rewritten.program);
  for (const program::Op& op : program.ops) operations_.push_back(op.target);
  options_ = run::compute_options(settings);
  executor_ = std::make_unique<run::Executor>(program, run::whole(program));

  const auto place_of = [&](const std::string& name) {
    const auto found = std::ranges::find(source.names, name);
    if (found == source.names.end())
      throw Error(ErrorCode::bug, fmt::format("the captured graph has no tensor {}", name));
    return static_cast<size_t>(found - source.names.begin());
  };
  for (const program::ValueId value : executor_->inputs()) {
    const auto port = std::ranges::find(program.inputs, value, &program::Port::value);
    if (port == program.inputs.end())
      throw Error(ErrorCode::bug, "the captured graph uses a value that nobody makes");
    inputs_.push_back(place_of(port->name));
  }
  for (const int at : executor_->state())
    state_.push_back(place_of(program.state[static_cast<size_t>(at)].name));
}

std::vector<torch::Tensor> CompiledGraph::run(const std::vector<torch::Tensor>& tensors) const {
  const auto at = [&](const std::vector<size_t>& places) {
    std::vector<torch::Tensor> chosen;
    for (const size_t place : places) chosen.push_back(tensors.at(place));
    return chosen;
  };
  return executor_->run(at(inputs_), at(state_), 1, context_of_this_thread(options_));
}

}  // namespace renkei::python
