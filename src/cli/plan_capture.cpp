#include "cli/plan_capture.h"

#include <optional>

#include "cli/network_data.h"
#include "model/blank.h"
#include "model/compute_options.h"
#include "report/progress.h"
#include "run/device.h"
#include "run/memory.h"
#include "run/op_costs.h"

namespace renkei::cli {

graph::Graph captured_graph(Settings settings, const CaptureRequest& request) {
  settings.set("model.name", request.model, "--model");
  std::optional<model::BlankTensors> blank;
  if (!request.measure) blank.emplace();
  run::install_memory_pools();
  run::set_threads(1);
  model::compute_options() = model::compute_options(settings);
  const auto network =
      model::make_network(settings, static_cast<uint64_t>(settings.integer("run.seed")));
  const auto data = make_random_data(*network, request.samples, 1);
  const model::Objective objective = model::chosen_objective(settings).value_or(
      network->random_sample().target == model::RandomTarget::numbers
          ? model::Objective::regression
          : model::Objective::classification);
  if (!request.measure) {
    graph::Graph graph = run::estimated_graph(*network, objective, *data, 2);
    graph.name = model::model_name(settings);
    return graph;
  }
  report::Progress progress(report::progress_on_stderr());
  run::OpCostOptions costs{.samples = request.samples};
  if (!request.quiet)
    costs.progress = [&](int64_t done, int64_t total) {
      progress.update({.label = "measuring ops", .done = done, .total = total});
    };
  graph::Graph graph = run::measured_graph(*network, objective, *data, costs);
  graph.name = model::model_name(settings);
  return graph;
}

}  // namespace renkei::cli
