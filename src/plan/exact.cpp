#include "plan/exact.h"

#include <algorithm>
#include <cmath>

#include "plan/at.h"

namespace renkei::plan {
namespace {

double choose(double n, double k) {
  return n < k ? 0 : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

class Branching {
 public:
  Branching(const Objective& objective, const SearchOptions& options, int64_t nodes,
            const std::function<bool()>& expired, std::optional<Evaluated>& best,
            int64_t& evaluations)
      : objective_(objective),
        options_(options),
        nodes_left_(nodes),
        expired_(expired),
        best_(best),
        evaluations_(evaluations),
        devices_(static_cast<int>(objective.problem().devices.size())) {}

  bool run() {
    for (const ScheduleKind kind : options_.schedules) {
      const std::vector<int> one{1};
      for (const int chunks : kind == ScheduleKind::interleaved ? options_.chunks : one)
        for (const int m : micro_batch_choices(objective_.problem().batch, options_))
          for (const bool sharded : options_.sharded)
            for (const Placement placement : {Placement::together, Placement::apart})
              run(kind, chunks, m, sharded, placement);
    }
    return nodes_left_ > 0;
  }

 private:
  void run(ScheduleKind kind, int chunks, int m, bool sharded, Placement placement) {
    for (int groups = 1; groups <= devices_; ++groups) {
      if (options_.stages && *options_.stages != groups * chunks) continue;
      if ((kind == ScheduleKind::accumulate) != (groups == 1)) continue;
      if (groups * chunks >= static_cast<int>(objective_.cuts().size())) break;
      layout_ = {.schedule = kind,
                 .micro_batches = m,
                 .chunks = chunks,
                 .sharded_optimizer = sharded,
                 .placement = placement,
                 .cuts = {0}};
      groups_ = groups;
      in_flight_.clear();
      next_stage({});
    }
  }

  // What the stages so far take for sure: down to this one and up again.
  struct Way {
    double down = 0, up = 0;
    int devices = 0;
  };

  void next_stage(const Way& way) {
    const int stage = layout_.stages(), stages = groups_ * layout_.chunks;
    if (nodes_left_ <= 0 || (nodes_left_ % 1024 == 0 && expired_())) {
      nodes_left_ = 0;
      return;
    }
    --nodes_left_;
    if (stage == stages) return leaf();
    const graph::Cuts& cuts = objective_.cuts();
    const size_t from = layout_.cuts.back();
    const bool is_last = stage == stages - 1;
    for (size_t to = is_last ? cuts.last() : from + 1; to < cuts.size() - (is_last ? 0 : 1); ++to) {
      if (!cuts.contains(to, from)) continue;
      layout_.cuts.push_back(to);
      if (stage < groups_)
        choose_replicas(way, from, to);
      else
        next_stage(way);
      layout_.cuts.pop_back();
    }
  }

  void choose_replicas(const Way& way, size_t from, size_t to) {
    const int stage = layout_.groups(), later = groups_ - stage - 1;
    const int64_t samples = objective_.problem().batch / layout_.micro_batches;
    int low = 1,
        high = static_cast<int>(std::min<int64_t>(samples, devices_ - way.devices - later));
    if (layout_.placement == Placement::apart) {
      if (stage == 0) high = std::min(high, devices_ / groups_);
      if (stage > 0) low = high = layout_.replicas[0];
    }
    for (int r = low; r <= high; ++r) {
      layout_.replicas.push_back(r);
      if (layout_.chunks > 1)  // memory and work of a group are known at the end only
        next_stage({.devices = way.devices + r});
      else
        bound_stage(way, from, to, r);
      layout_.replicas.pop_back();
    }
  }

  void bound_stage(const Way& way, size_t from, size_t to, int r) {
    const int stage = layout_.stages() - 1, stages = groups_, m = layout_.micro_batches;
    const DeviceRange range = layout_.placement == Placement::apart
                                  ? DeviceRange{stage, groups_, r}
                                  : DeviceRange{way.devices, 1, r};
    const GroupCosts& group = objective_.group(range);
    if (in_flight_.empty())
      in_flight_ = objective_.steps().in_flight(
          {.kind = layout_.schedule, .stages = stages, .micro_batches = m});
    const double samples = objective_.samples(m, r);
    const auto bytes = [&](bool recompute) {
      return objective_
          .memory(group, from, to, samples, in_flight_[at(stage)], recompute,
                  layout_.sharded_optimizer)
          .total();
    };
    const bool recompute = bytes(false) > group.memory_bytes;
    if (recompute && bytes(true) > group.memory_bytes) return;
    const StageTimes times = objective_.stage_times(group, GroupCosts{}, from, to, samples,
                                                    recompute, layout_.sharded_optimizer);
    const bool split = layout_.schedule == ScheduleKind::zero_bubble;
    Way next{.devices = way.devices + r};
    next.down = way.down + times.forward;
    next.up = way.up + (split ? times.backward_input : times.backward());
    const double work = m * times.compute();
    const double here = way.down + (split ? work : work + way.up);
    if (beaten(std::max(here, next.down + next.up + rest(to, devices_ - next.devices)))) return;
    next_stage(next);
  }

  // All micro-batches of what is left, divided perfectly among the devices that are left.
  double rest(size_t from, int devices) const {
    const graph::Cuts& cuts = objective_.cuts();
    if (from == cuts.last() || devices == 0) return 0;
    const size_t shortest = objective_.problem().machine.kinds.size();
    const graph::Seconds seconds = cuts.seconds(shortest, from, cuts.last());
    const double samples = objective_.samples(layout_.micro_batches, 1);
    const double weights =
        layout_.schedule == ScheduleKind::zero_bubble ? 0 : seconds.backward_weight.at(samples);
    return layout_.micro_batches *
           (seconds.forward.at(samples) + seconds.backward_input.at(samples) + weights) / devices;
  }

  bool beaten(double bound) const { return best_ && bound >= best_->seconds; }

  void leaf() {
    if (!objective_.possible(layout_)) return;
    Evaluated result = objective_.cost(layout_);
    if (!result.fits() || beaten(lower_bound(layout_.shape(), result.times))) return;
    result.seconds = objective_.steps().step_seconds(layout_.shape(), result.times);
    ++evaluations_;
    if (!beaten(result.seconds)) best_ = std::move(result);
  }

  const Objective& objective_;
  const SearchOptions& options_;
  int64_t nodes_left_;
  const std::function<bool()>& expired_;
  std::optional<Evaluated>& best_;
  int64_t& evaluations_;
  int devices_;
  int groups_ = 1;
  Layout layout_;
  std::vector<InFlight> in_flight_;
};

}  // namespace

bool search_exactly(const Objective& objective, const SearchOptions& options, int64_t nodes,
                    const std::function<bool()>& expired, std::optional<Evaluated>& best,
                    int64_t& evaluations) {
  return Branching(objective, options, nodes, expired, best, evaluations).run();
}

double count_layouts(const Objective& objective, const SearchOptions& options) {
  const auto devices = static_cast<int>(objective.problem().devices.size());
  const auto cuts = static_cast<double>(objective.cuts().size());
  double splits = 0;
  for (int stages = 1; stages <= devices; ++stages)
    splits += choose(cuts - 2, stages - 1) * choose(devices, stages);
  return splits * static_cast<double>(options.schedules.size() * options.sharded.size()) *
         static_cast<double>(micro_batch_choices(objective.problem().batch, options).size());
}

}  // namespace renkei::plan
