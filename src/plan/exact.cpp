#include "plan/exact.h"

#include <algorithm>
#include <cmath>

#include "plan/at.h"

namespace renkei::plan {
namespace {

constexpr int64_t kNodesOfAStep = 10;  // that take as long as the evaluation of a schedule
constexpr double kMostLayouts = 1e8;   // of a family that is tried

double choose(double n, double k) {
  return n < k ? 0 : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

class Branching {
 public:
  Branching(const Objective& objective, const SearchOptions& options,
            const std::function<bool()>& expired, std::optional<Evaluated>& best,
            int64_t& evaluations)
      : objective_(objective),
        options_(options),
        expired_(expired),
        best_(best),
        evaluations_(evaluations),
        devices_(static_cast<int>(objective.problem().devices.size())) {}

  bool run() {
    bool complete = true;
    const std::vector<int> one{1};
    for (const ScheduleKind kind : options_.schedules)
      for (const int chunks : kind == ScheduleKind::interleaved ? options_.chunks : one)
        for (int groups = 1; groups <= devices_; ++groups) {
          if (options_.stages && *options_.stages != groups * chunks) continue;
          if ((kind == ScheduleKind::accumulate) != (groups == 1)) continue;
          if (groups * chunks >= static_cast<int>(objective_.cuts().size())) break;
          complete &= run(kind, chunks, groups);
        }
    return complete;
  }

 private:
  bool run(ScheduleKind kind, int chunks, int groups) {
    groups_ = groups;
    nodes_left_ = count(chunks) > kMostLayouts ? 0 : options_.exact_nodes;
    for (const int m : micro_batches_) {
      in_flight_.clear();
      const Shape shape{kind, groups * chunks, m, chunks};
      if (beaten(least_seconds(shape, devices_, objective_.least_work(objective_.samples(m, 1)))))
        continue;
      for (const bool sharded : options_.sharded)
        for (const Placement placement : {Placement::together, Placement::apart}) {
          layout_ = {.schedule = kind,
                     .micro_batches = m,
                     .chunks = chunks,
                     .sharded_optimizer = sharded,
                     .placement = placement,
                     .cuts = {0}};
          next_stage({});
        }
    }
    return nodes_left_ > 0;
  }

  // How many layouts the family has, about.
  double count(int chunks) {
    return chains(groups_ * chunks) * choose(devices_, groups_) *
           static_cast<double>(options_.sharded.size() * micro_batches_.size());
  }

  // Of cuts, each containing the one before, with so many stages between the first and the last.
  double chains(int stages) {
    const graph::Cuts& cuts = objective_.cuts();
    if (chains_.empty()) {
      chains_.emplace_back(cuts.size());
      chains_[0][0] = 1;
    }
    while (static_cast<int>(chains_.size()) <= stages) {
      std::vector<double> next(cuts.size());
      for (size_t to = 1; to < cuts.size(); ++to)
        for (size_t from = 0; from < to; ++from)
          if (chains_.back()[from] > 0 && cuts.contains(to, from)) next[to] += chains_.back()[from];
      chains_.push_back(std::move(next));
    }
    return chains_[at(stages)].back();
  }

  // What the stages so far take for sure: down to this one and up again.
  struct Way {
    double down = 0, up = 0;
    int devices = 0;
  };

  void next_stage(const Way& way) {
    const int stage = layout_.stages(), stages = groups_ * layout_.chunks;
    if (nodes_left_ <= 0 || (++visited_ % 256 == 0 && expired_())) {
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
        bound_group(way, from, to);
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
      if (layout_.chunks > 1)
        bound_group({.down = way.down, .devices = way.devices + r}, from, to);
      else
        bound_stage(way, from, to, r);
      layout_.replicas.pop_back();
    }
  }

  // With chunks, the memory of a group is known at the end only, but not what it has to compute:
  // all that is left must find a place in the time that the groups have left. A group waits for
  // those before it at the beginning, and they for it at the end.
  void bound_group(Way way, size_t from, size_t to) {
    const int stage = layout_.stages() - 1, group = stage % groups_, m = layout_.micro_batches;
    const graph::Cuts& cuts = objective_.cuts();
    const size_t shortest = objective_.problem().machine.kinds.size();
    const double seconds = cuts.seconds(shortest, from, to)
                               .total_at(objective_.samples(m, layout_.replicas[at(group)]));
    const double rest = cuts.seconds(shortest, to, cuts.last()).total_at(objective_.samples(m, 1));
    busy_.resize(at(groups_));
    const double before = busy_[at(group)];
    busy_[at(group)] = (stage < groups_ ? way.down : before) + m * seconds;
    if (stage < groups_) way.down += seconds;
    if (!best_ || !overloaded(way, m * rest)) next_stage(way);
    busy_[at(group)] = before;
  }

  bool overloaded(const Way& way, double rest) const {
    double room = (devices_ - way.devices) * (best_->seconds - way.down);
    for (int group = 0; group < layout_.groups(); ++group) {
      if (beaten(busy_[at(group)])) return true;
      room += layout_.replicas[at(group)] * (best_->seconds - busy_[at(group)]);
    }
    return rest > room * (1 + 1e-12);
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
    nodes_left_ -= kNodesOfAStep;
    result.seconds = objective_.steps().step_seconds(layout_.shape(), result.times);
    ++evaluations_;
    if (!beaten(result.seconds)) best_ = std::move(result);
  }

  const Objective& objective_;
  const SearchOptions& options_;
  int64_t visited_ = 0;
  int64_t nodes_left_ = 0;  // of this family
  const std::function<bool()>& expired_;
  std::optional<Evaluated>& best_;
  int64_t& evaluations_;
  int devices_;
  std::vector<int> micro_batches_ = all_micro_batches(objective_.problem().batch, options_);
  int groups_ = 1;
  Layout layout_;
  std::vector<InFlight> in_flight_;
  std::vector<std::vector<double>> chains_;  // by stages, then by the cut they end at
  std::vector<double> busy_;                 // each group so far, when there are chunks
};

}  // namespace

bool search_exactly(const Objective& objective, const SearchOptions& options,
                    const std::function<bool()>& expired, std::optional<Evaluated>& best,
                    int64_t& evaluations) {
  return Branching(objective, options, expired, best, evaluations).run();
}

}  // namespace renkei::plan
