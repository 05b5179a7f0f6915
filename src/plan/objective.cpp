#include "plan/objective.h"

#include <algorithm>
#include <cmath>

#include "plan/at.h"

namespace renkei::plan {
namespace {

double transfer(const comm::LinkCost& link, double bytes) {
  return bytes > 0 ? link.latency_seconds + bytes / link.bytes_per_second : 0;
}

}  // namespace

double GroupCosts::reduce_seconds(double bytes, double bucket_bytes) const {
  if (ranks == 1 || bytes <= 0) return 0;
  return std::ceil(bytes / bucket_bytes) * reduce_latency + bytes * reduce_per_byte;
}

double GroupCosts::sum_seconds(double bytes, double bucket_bytes) const {
  return bytes <= 0 ? 0 : std::ceil(bytes / bucket_bytes) * sum_latency + bytes * sum_per_byte;
}

Objective::Objective(const Problem& problem, const StepModel& steps, graph::Cuts::Options options)
    : problem_(problem), steps_(steps), cuts_(problem.graph, seconds_by_kind(problem), options) {}

const GroupCosts& Objective::group(const DeviceRange& devices) const {
  const auto found = groups_.find(devices);
  if (found != groups_.end()) return found->second;
  GroupCosts costs{.ranks = devices.count};
  std::vector<cluster::Place> places;
  for (int i = 0; i < devices.count; ++i) {
    const cluster::Place& place = problem_.devices[at(devices[i])];
    const auto kind = at(place.kind);
    places.push_back(place);
    if (std::ranges::count(costs.kinds, kind) > 0) continue;
    const cluster::DeviceKind& device = problem_.machine.kinds[kind];
    const auto memory = static_cast<double>(problem_.memory_bytes > 0 ? problem_.memory_bytes
                                                                      : device.memory_bytes);
    const bool first = costs.kinds.empty();
    costs.memory_bytes = first ? memory : std::min(costs.memory_bytes, memory);
    costs.bytes_per_second = first
                                 ? device.memory_bytes_per_second
                                 : std::min(costs.bytes_per_second, device.memory_bytes_per_second);
    costs.kinds.push_back(kind);
  }
  const auto on_first_node = [&](const cluster::Place& place) {
    return place.node == places.front().node;
  };
  costs.shares = problem_.replicas_of_a_node_share && devices.count > 1 &&
                 std::ranges::all_of(places, on_first_node);
  if (devices.count > 1) {
    const ReduceCosts reduce = reduce_costs(problem_, places);
    costs.reduce_latency = reduce.latency;
    // The devices of a tensor group do it at the same time, over the same links between nodes.
    costs.reduce_per_byte =
        reduce.per_byte * (std::ranges::all_of(places, on_first_node) ? 1 : sharing_a_node());
  }
  if (problem_.tensor > 1) {
    std::vector<cluster::Place> all;
    for (int i = 0; i < devices.count; ++i) {
      const auto first = problem_.members.begin() + devices[i] * problem_.tensor;
      all.insert(all.end(), first, first + problem_.tensor);
    }
    const ReduceCosts reduce = reduce_costs(problem_, all);
    costs.sum_latency = reduce.latency;
    costs.sum_per_byte = reduce.per_byte;
  }
  return groups_.emplace(devices, std::move(costs)).first->second;
}

// Devices of a tensor group that are on its first node.
int Objective::sharing_a_node() const {
  int count = 0;
  for (int i = 0; i < problem_.tensor && i < static_cast<int>(problem_.members.size()); ++i)
    count += problem_.members[at(i)].node == problem_.members.front().node;
  return std::max(1, count);
}

bool Objective::possible(const Layout& layout) const {
  const bool even =
      std::ranges::adjacent_find(layout.replicas, std::not_equal_to<>()) == layout.replicas.end();
  if (problem_.even_replicas && !even) return false;
  if (layout.stages() != layout.groups() * layout.chunks) return false;
  const auto devices = static_cast<int>(problem_.devices.size());
  if (problem_.use_all_devices ? layout.devices() != devices : layout.devices() > devices)
    return false;
  if (layout.micro_batches < 1 || problem_.batch % layout.micro_batches != 0) return false;
  if (layout.placement == Placement::apart && (!even || layout.groups() == 1)) return false;
  if (layout.sharded_optimizer && *std::ranges::max_element(layout.replicas) == 1) return false;
  if ((layout.schedule == ScheduleKind::accumulate) != (layout.stages() == 1)) return false;
  if ((layout.schedule == ScheduleKind::interleaved) != (layout.chunks > 1)) return false;
  if (layout.chunks > 1 && (layout.groups() < 2 || layout.micro_batches % layout.groups() != 0))
    return false;
  return *std::ranges::max_element(layout.replicas) <= problem_.batch / layout.micro_batches;
}

double Objective::samples(int micro_batches, int replicas) const {
  const int64_t micro_batch = problem_.batch / micro_batches;
  const int64_t most = (micro_batch + replicas - 1) / replicas;
  return static_cast<double>(most);
}

double Objective::least_work(double samples) const {
  return cuts_.seconds(problem_.machine.kinds.size(), 0, cuts_.last()).total_at(samples);
}

StageTimes Objective::stage_times(const GroupCosts& group, const GroupCosts& everyone, size_t from,
                                  size_t to, double samples, bool recompute, bool sharded) const {
  StageTimes times;
  for (const size_t kind : group.kinds) {
    const graph::Seconds seconds = cuts_.seconds(kind, from, to);
    times.forward = std::max(times.forward, seconds.forward.at(samples));
    times.backward_input = std::max(times.backward_input, seconds.backward_input.at(samples));
    times.backward_weight = std::max(times.backward_weight, seconds.backward_weight.at(samples));
  }
  if (recompute) times.backward_input += times.forward;
  const graph::RangeBytes bytes = cuts_.bytes(from, to);
  const double reduce =
      group.reduce_seconds(bytes.trainable - bytes.tied - bytes.summed, problem_.bucket_bytes) +
      everyone.reduce_seconds(bytes.tied, problem_.bucket_bytes) +
      group.sum_seconds(bytes.summed, problem_.bucket_bytes);
  const bool shares = group.shares || (sharded && group.ranks > 1);
  // Sharded, a reduction is the first half of an allreduce, and gathering the second; ranks that
  // have the parameters in common have nothing to gather.
  times.reduce = shares ? reduce / 2 : reduce;
  times.gather = shares && !group.shares ? reduce / 2 : 0;
  times.buckets = std::max(1, static_cast<int>(std::ceil(bytes.trainable / problem_.bucket_bytes)));
  // Gradients and parameters are read, the latter written, the state read and written.
  const double touched = bytes.trainable * (3 + 2 * problem_.optimizer_state);
  times.update = touched / group.bytes_per_second / (shares ? group.ranks : 1);
  return times;
}

StageMemory Objective::memory(const GroupCosts& group, size_t from, size_t to, double samples,
                              InFlight in_flight, bool recompute, bool sharded) const {
  return stage_memory(cuts_, from, to,
                      {.samples = samples,
                       .graph_batch = static_cast<double>(problem_.graph.batch),
                       .in_flight = in_flight,
                       .replicas = group.ranks,
                       .recompute = recompute,
                       .sharded_optimizer = sharded || group.shares,
                       .shared_parameters = group.shares,
                       .optimizer_state = problem_.optimizer_state});
}

// The rank with the most to send or to receive sets the time, over the slowest link that is used.
double Objective::transfer_seconds(const Layout& layout, int from_group, int to_group,
                                   const graph::Line& bytes) const {
  const DeviceRange from = devices_of(layout, from_group), to = devices_of(layout, to_group);
  const int fewer = std::min(from.count, to.count);
  const double most = bytes.at(samples(layout.micro_batches, fewer));
  const auto& devices = problem_.devices;
  if (layout.placement == Placement::apart) {
    double slowest = 0;
    for (int i = 0; i < fewer; ++i)
      slowest = std::max(
          slowest,
          transfer(
              link_between(problem_.machine, devices[at(from[i])], devices[at(to[i])]),
              most *
                  (devices[at(from[i])].node == devices[at(to[i])].node ? 1 : sharing_a_node())));
    return slowest;
  }
  const DeviceRange &lower = from.first < to.first ? from : to,
                    &upper = from.first < to.first ? to : from;
  const cluster::Place &first = devices[at(lower.first)],
                       &last = devices[at(upper[upper.count - 1])];
  // Replicas of a node share its link.
  const int sharing =
      first.node == last.node
          ? 1
          : std::min(fewer * sharing_a_node(), problem_.machine.nodes[at(first.nodes)].devices);
  return transfer(link_between(problem_.machine, first, last), most * sharing);
}

Evaluated Objective::cost(const Layout& layout) const {
  Evaluated result{.layout = layout};
  const Shape shape = layout.shape();
  const auto in_flight = steps_.in_flight(shape);
  const GroupCosts& everyone = group({0, 1, layout.devices()});
  result.times.resize(at(layout.stages()));
  result.segment_cuts.resize(at(layout.stages()));
  for (int g = 0; g < layout.groups(); ++g) {
    const GroupCosts& devices = group(devices_of(layout, g));
    const double most = samples(layout.micro_batches, devices.ranks);
    StageMemory memory;
    bool recompute = false;
    for (const bool again : {false, true}) {
      memory = {};
      recompute = again;
      for (int stage = g; stage < layout.stages(); stage += layout.groups()) {
        StageMemory here =
            this->memory(devices, layout.cuts[at(stage)], layout.cuts[at(stage) + 1], most,
                         in_flight[at(stage)], recompute, layout.sharded_optimizer);
        memory += here;
        result.segment_cuts[at(stage)] = std::move(here.segment_cuts);
      }
      if (memory.total() <= devices.memory_bytes) break;
    }
    result.memory.push_back(memory);
    result.recompute.push_back(recompute);
    result.missing_bytes = std::max(result.missing_bytes, memory.total() - devices.memory_bytes);
    for (int stage = g; stage < layout.stages(); stage += layout.groups())
      result.times[at(stage)] =
          stage_times(devices, everyone, layout.cuts[at(stage)], layout.cuts[at(stage) + 1], most,
                      recompute, layout.sharded_optimizer);
  }
  for (int stage = 0; stage + 1 < layout.stages(); ++stage) {
    const size_t cut = layout.cuts[at(stage) + 1];
    const int from = shape.group_of(stage), to = shape.group_of(stage + 1);
    StageTimes& times = result.times[at(stage)];
    times.send_forward = transfer_seconds(layout, from, to, cuts_.crossing_bytes(cut));
    times.send_backward = transfer_seconds(layout, to, from, cuts_.crossing_gradient_bytes(cut));
  }
  return result;
}

Evaluated Objective::evaluate(const Layout& layout) const {
  Evaluated result = cost(layout);
  if (result.fits()) result.seconds = steps_.step_seconds(layout.shape(), result.times);
  return result;
}

}  // namespace renkei::plan
