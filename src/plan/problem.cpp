#include "plan/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace renkei::plan {
namespace {

graph::Line minimum(const graph::Line& a, const graph::Line& b) {
  return {std::min(a.fixed, b.fixed), std::min(a.per_sample, b.per_sample)};
}

graph::Seconds minimum(const graph::Seconds& a, const graph::Seconds& b) {
  return {minimum(a.forward, b.forward), minimum(a.backward_input, b.backward_input),
          minimum(a.backward_weight, b.backward_weight)};
}

}  // namespace

int Layout::devices() const {
  return std::accumulate(replicas.begin(), replicas.end(), 0);
}

DeviceRange devices_of(const Layout& layout, int group) {
  const int count = layout.replicas[static_cast<size_t>(group)];
  if (layout.placement == Placement::apart) return {group, layout.groups(), count};
  return {std::accumulate(layout.replicas.begin(), layout.replicas.begin() + group, 0), 1, count};
}

ReduceCosts reduce_costs(const Problem& problem, const std::vector<cluster::Place>& places) {
  // As measured at two sizes: nearly nothing, and a bucket.
  const comm::CostModel model = cost_model(problem.machine, places);
  const auto bucket = static_cast<size_t>(problem.bucket_bytes);
  const double latency = comm::choose(model, 1).predicted_seconds;
  return {latency, std::max(0.0, comm::choose(model, bucket).predicted_seconds - latency) /
                       problem.bucket_bytes};
}

namespace {

// Exchanges in tensor groups are part of the times of ops: nothing is computed meanwhile. Those of
// the first group count, and where the machine is not the same everywhere, of the last.
void add_exchanges(const Problem& problem, std::vector<graph::Seconds>& seconds) {
  if (problem.tensor == 1) return;
  ReduceCosts slowest;
  for (const auto first : {problem.members.begin(), problem.members.end() - problem.tensor}) {
    const ReduceCosts costs = reduce_costs(problem, {first, first + problem.tensor});
    slowest = {std::max(slowest.latency, costs.latency),
               std::max(slowest.per_byte, costs.per_byte)};
  }
  const auto batch = static_cast<double>(problem.graph.batch);
  for (size_t op = 0; op < seconds.size(); ++op) {
    const auto line = [&](const graph::Exchange& exchange) {
      return graph::Line{exchange.halves * slowest.latency / 2,
                         exchange.bytes * slowest.per_byte / 2 / batch};
    };
    seconds[op].forward += line(problem.graph.ops[op].exchange_forward);
    seconds[op].backward_input += line(problem.graph.ops[op].exchange_backward);
  }
}

}  // namespace

std::vector<std::vector<graph::Seconds>> seconds_by_kind(const Problem& problem) {
  const auto sustained = [&](size_t kind) {
    const cluster::DeviceKind& device = problem.machine.kinds[kind];
    return device.flops_per_second * device.efficiency;
  };
  const auto first = static_cast<size_t>(problem.devices.front().kind);
  std::vector<std::vector<graph::Seconds>> by_kind;
  for (size_t kind = 0; kind < problem.machine.kinds.size(); ++kind) {
    if (problem.graph.estimated && has_work(problem.graph)) {
      const cluster::DeviceKind& device = problem.machine.kinds[kind];
      graph::Graph estimated = problem.graph;
      estimate_seconds(estimated,
                       {sustained(kind), device.memory_bytes_per_second, device.call_seconds});
      by_kind.push_back(op_seconds(estimated));
    } else {
      by_kind.push_back(op_seconds(problem.graph));
      for (graph::Seconds& seconds : by_kind.back()) seconds *= sustained(first) / sustained(kind);
    }
  }
  for (auto& seconds : by_kind) add_exchanges(problem, seconds);
  std::vector<graph::Seconds> shortest = by_kind.front();
  for (const auto& seconds : by_kind)
    for (size_t op = 0; op < shortest.size(); ++op)
      shortest[op] = minimum(shortest[op], seconds[op]);
  by_kind.push_back(std::move(shortest));
  return by_kind;
}

std::string describe(const Layout& layout) {
  const bool even =
      std::ranges::adjacent_find(layout.replicas, std::not_equal_to<>()) == layout.replicas.end();
  const std::string devices =
      even ? fmt::format("{}{}", layout.groups() > 1 ? fmt::format("{} × ", layout.groups()) : "",
                         layout.replicas.front())
           : fmt::format("{}", fmt::join(layout.replicas, "+"));
  std::string text = fmt::format("{} stage{} on {} device{}, {} micro-batch{}, {}", layout.stages(),
                                 layout.stages() == 1 ? "" : "s", devices,
                                 layout.devices() == 1 ? "" : "s", layout.micro_batches,
                                 layout.micro_batches == 1 ? "" : "es", name_of(layout.schedule));
  if (layout.placement == Placement::apart) text += ", replicas apart";
  if (layout.sharded_optimizer) text += ", sharded optimizer";
  return text;
}

}  // namespace renkei::plan
