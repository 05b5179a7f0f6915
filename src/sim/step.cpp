#include "sim/step.h"

#include <algorithm>

#include "base/philox.h"
#include "plan/at.h"

namespace renkei::sim {
namespace {

using schedule::RankedStep;
using schedule::Task;
using schedule::TaskKind;

using plan::at;

// What can be left out of a step, to see what it costs.
struct Causes {
  bool network = true;
  bool differences = true;
};

class VirtualTraining {
 public:
  VirtualTraining(const plan::Objective& objective, const plan::Evaluated& evaluated,
                  const StepOptions& options)
      : objective_(objective),
        evaluated_(evaluated),
        options_(options),
        shape_(evaluated.layout.shape()),
        groups_(schedule::make_schedule(shape_)),
        network_(machine(), used_devices()) {
    for (int rank = 0; rank < network_.ranks(); ++rank)
      slowness_.push_back(slowness(machine(), network_.place(rank), rank, options.seed));
    group_of_.resize(slowness_.size());
    for (int group = 0; group < shape_.groups(); ++group) {
      const plan::DeviceRange range = devices_of(evaluated.layout, group);
      for (int i = 0; i < range.count; ++i) group_of_[at(range[i])] = group;
    }
    for (int stage = 0; stage < shape_.stages; ++stage) {
      ranks_of_.push_back(ranks_of(stage));
      ReductionOptions reduction = options.reduction;
      reduction.scatter = evaluated.layout.sharded_optimizer && ranks_of_.back().size() > 1;
      const bool all = at(network_.ranks()) == ranks_of_.back().size();
      if (!all) reduction.ring_order.clear();
      reductions_.emplace_back(
          machine(), all ? network_ : part_of(machine(), network_, ranks_of_.back()), reduction);
    }
  }

  schedule::Evaluation evaluate(int step, Causes causes) {
    RankedStep ranked{
        .ranks_of = ranks_of_, .stages = shape_.stages, .micro_batches = shape_.micro_batches};
    for (const int group : group_of_) ranked.lists.push_back(groups_[at(group)]);
    ranked.seconds = [&](int rank, const Task& task) { return seconds(step, rank, task, causes); };
    ranked.transfer = [&](int from, int to, const Task& send) {
      return causes.network ? transfer_seconds(from, to, send) : 0;
    };
    ranked.reductions.resize(ranks_of_.size());
    if (causes.network)
      ranked.reduce = [&](int set, std::span<const RankedStep::Behind> members) {
        return reduce(set, members);
      };
    return schedule::evaluate(ranked, schedule::Record::events);
  }

  // Of the rank that loads the most.
  double load_seconds() const {
    double longest = 0;
    for (size_t group = 0; group < groups_.size(); ++group) {
      double of_group = 0;
      for (const Task& task : groups_[group])
        if (task.kind == TaskKind::load)
          of_group += options_.load_seconds_per_sample * samples_of(task.stage);
      longest = std::max(longest, of_group);
    }
    return longest;
  }
  double update_seconds() const {
    double longest = 0;
    for (const auto& times : evaluated_.times) longest = std::max(longest, times.update);
    return longest;
  }
  std::string algorithm() const {
    size_t largest = 0;
    for (size_t stage = 0; stage < ranks_of_.size(); ++stage)
      if (gradient_bytes(stage) > gradient_bytes(largest)) largest = stage;
    const double bucket =
        options_.reduction.overlap ? options_.reduction.bucket_bytes : gradient_bytes(largest);
    return reductions_[largest].algorithm(std::min(bucket, gradient_bytes(largest)));
  }

 private:
  const cluster::Description& machine() const { return objective_.problem().machine; }
  std::vector<cluster::Place> used_devices() const {
    std::vector<cluster::Place> places = objective_.problem().devices;
    places.resize(at(evaluated_.layout.devices()));
    return places;
  }
  std::vector<int> ranks_of(int stage) const {
    const plan::DeviceRange range = devices_of(evaluated_.layout, shape_.group_of(stage));
    std::vector<int> ranks;
    for (int i = 0; i < range.count; ++i) ranks.push_back(range[i]);
    return ranks;
  }
  double samples_of(int stage) const {
    const auto replicas = static_cast<int>(ranks_of_[at(stage)].size());
    return objective_.samples(shape_.micro_batches, replicas);
  }
  double gradient_bytes(size_t stage) const {
    const auto& cuts = evaluated_.layout.cuts;
    return objective_.cuts().bytes(cuts[stage], cuts[stage + 1]).trainable;
  }

  double seconds(int step, int rank, const Task& task, Causes causes) const {
    const plan::StageTimes& times = evaluated_.times[at(std::min(task.stage, shape_.stages - 1))];
    double seconds = 0;
    switch (task.kind) {
      case TaskKind::forward:
        seconds = times.forward;
        break;
      case TaskKind::backward:
        seconds = times.backward();
        break;
      case TaskKind::backward_input:
        seconds = times.backward_input;
        break;
      case TaskKind::backward_weight:
        seconds = times.backward_weight;
        break;
      case TaskKind::load:
        return options_.load_seconds_per_sample * samples_of(task.stage);
      case TaskKind::update:
        return task.stage < shape_.stages ? times.update + (causes.network ? times.gather : 0) : 0;
      default:
        return 0;
    }
    seconds *= options_.compute_factor;
    if (!causes.differences) return seconds;
    seconds *= slowness_[at(rank)];
    if (options_.jitter == 0) return seconds;
    const uint64_t place =
        static_cast<uint64_t>(task.kind) << 56 | static_cast<uint64_t>(task.stage) << 44 |
        static_cast<uint64_t>(task.micro_batch) << 24 | static_cast<uint64_t>(rank);
    Random random(options_.seed, RandomUse::simulated_jitter, static_cast<uint32_t>(step), place);
    return seconds * std::max(0.5, 1 + options_.jitter * static_cast<double>(random.normal()));
  }

  // As the planner counts it, but over the link of these two.
  double transfer_seconds(int from, int to, const Task& send) const {
    const int upper = std::min(send.stage, send.peer);
    const plan::StageTimes& times = evaluated_.times[at(upper)];
    const double planned = send.peer > send.stage ? times.send_forward : times.send_backward;
    if (planned == 0) return 0;
    const auto& cuts = objective_.cuts();
    const size_t cut = evaluated_.layout.cuts[at(upper) + 1];
    const graph::Line& bytes =
        send.peer > send.stage ? cuts.crossing_bytes(cut) : cuts.crossing_gradient_bytes(cut);
    const auto wider = std::max(ranks_of_[at(send.stage)].size(), ranks_of_[at(send.peer)].size());
    const double samples = objective_.samples(shape_.micro_batches, static_cast<int>(wider));
    const comm::LinkCost link =
        cluster::link_between(machine(), network_.place(from), network_.place(to));
    return link.latency_seconds + bytes.at(samples) / link.bytes_per_second;
  }

  std::vector<double> reduce(int set, std::span<const RankedStep::Behind> members) {
    if (set >= shape_.stages || members.size() == 1) {
      std::vector<double> ends;
      for (const auto& member : members) ends.push_back(member.end);
      return ends;
    }
    // Ranks of the reduction's own network.
    const std::vector<int>& ranks = ranks_of_[at(set)];
    std::vector<RankedStep::Behind> renumbered(members.begin(), members.end());
    for (auto& member : renumbered)
      member.rank = static_cast<int>(std::ranges::lower_bound(ranks, member.rank) - ranks.begin());
    return reductions_[at(set)].ends(gradient_bytes(at(set)), renumbered);
  }

  const plan::Objective& objective_;
  const plan::Evaluated& evaluated_;
  const StepOptions& options_;
  plan::Shape shape_;
  schedule::Schedule groups_;
  Network network_;
  std::vector<int> group_of_;
  std::vector<double> slowness_;
  std::vector<std::vector<int>> ranks_of_;
  std::vector<Reductions> reductions_;  // of each stage
};

// Of sums that should be equal.
constexpr double kRounding = 1e-9;

double mean_busy(const schedule::Evaluation& evaluation) {
  double sum = 0;
  for (const double busy : evaluation.busy_seconds) sum += busy;
  return sum / static_cast<double>(evaluation.busy_seconds.size());
}

}  // namespace

double slowness(const cluster::Description& machine, const cluster::Place& place, int device,
                uint64_t seed) {
  const double spread = machine.kinds[static_cast<size_t>(place.kind)].spread;
  if (spread == 0) return 1;
  Random random(seed, RandomUse::simulated_device, 0, static_cast<uint64_t>(device));
  return 1 / std::clamp(1 + spread * static_cast<double>(random.normal()), 0.1, 2.0);
}

SimulatedStep simulate_step(const plan::Objective& objective, const plan::Evaluated& evaluated,
                            const StepOptions& options) {
  VirtualTraining training(objective, evaluated, options);
  SimulatedStep result{.algorithm = training.algorithm()};
  const schedule::Evaluation equal = training.evaluate(0, {.network = false, .differences = false});
  const int steps = options.jitter > 0 ? options.steps : 1;
  double local = 0;
  for (int step = 0; step < steps; ++step) {
    local += training.evaluate(step, {.network = false}).seconds / steps;
    result.evaluation = training.evaluate(step, {});
    result.seconds += result.evaluation.seconds / steps;
  }
  StepParts& parts = result.parts;
  parts.compute = mean_busy(equal);
  parts.update = training.update_seconds();
  parts.data = training.load_seconds();
  parts.bubble = std::max(0.0, equal.seconds - parts.compute - parts.data - parts.update);
  if (parts.bubble < kRounding * equal.seconds) parts.bubble = 0;
  parts.imbalance = local - equal.seconds;
  parts.communication = result.seconds - local;
  return result;
}

}  // namespace renkei::sim
