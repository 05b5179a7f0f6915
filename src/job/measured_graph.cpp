#include "job/measured_graph.h"

#include "job/planned_network.h"
#include "job/tensor_plans.h"
#include "networks/settings.h"
#include "report/progress.h"
#include "run/device.h"
#include "run/make_model.h"
#include "run/memory.h"
#include "run/op_costs.h"

namespace renkei::job {

graph::Graph measured_graph(const Settings& settings, const MeasureRequest& request) {
  run::install_memory_pools();
  run::set_threads(1);
  const PlannedNetwork planned = planned_network(settings);
  run::ModelOptions options = run::model_options(settings, 1);
  options.on_demand = true;
  options.shard = request.part;
  run::Model model = run::make_model(planned.open, planned.loss, options);
  report::Progress progress(report::progress_on_stderr());
  run::OpCostOptions costs{.samples = request.samples, .compute = run::compute_options(settings)};
  if (!request.quiet)
    costs.progress = [&](int64_t done, int64_t total) {
      progress.update({.label = "measuring ops", .done = done, .total = total});
    };
  graph::Graph graph = run::measured_graph(model, costs);
  mark_summed(graph, model.slices);
  graph.name = networks::model_name(settings);
  return graph;
}

}  // namespace renkei::job
