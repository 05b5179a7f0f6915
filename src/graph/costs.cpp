#include "graph/costs.h"

#include <algorithm>

namespace renkei::graph {

std::vector<Seconds> op_seconds(const Graph& graph) {
  std::vector<Seconds> seconds;
  const auto batch = static_cast<double>(graph.batch);
  for (const Op& op : graph.ops) {
    const bool scales = scales_with_batch(graph, op);
    const auto line = [&](double total, double fixed) {
      return scales ? Line{fixed, (total - fixed) / batch} : Line{total, 0};
    };
    const Line backward = line(op.backward_seconds, op.backward_fixed_seconds);
    const double input = op.backward_input_share;
    seconds.push_back({line(op.forward_seconds, op.forward_fixed_seconds),
                       {backward.fixed * input, backward.per_sample * input},
                       {backward.fixed * (1 - input), backward.per_sample * (1 - input)}});
  }
  return seconds;
}

bool has_work(const Graph& graph) {
  return std::ranges::all_of(graph.ops,
                             [](const Op& op) { return op.flops > 0 || op.traffic_bytes > 0; });
}

void estimate_seconds(Graph& graph, const Roofline& device) {
  for (Op& op : graph.ops) {
    const double work =
        std::max(op.flops / device.flops_per_second, op.traffic_bytes / device.bytes_per_second);
    const bool has_parameters = !op.parameters.empty();
    op.forward_fixed_seconds = device.call_seconds;
    op.backward_fixed_seconds = device.call_seconds * (has_parameters ? 2 : 1);
    op.forward_seconds = op.forward_fixed_seconds + work;
    op.backward_seconds = op.backward_fixed_seconds + work * (has_parameters ? 2 : 1);
    op.backward_input_share = has_parameters ? 0.5 : 1;
  }
  graph.estimated = true;
}

}  // namespace renkei::graph
