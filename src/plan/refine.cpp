#include "plan/refine.h"

#include <algorithm>

#include "plan/at.h"

namespace renkei::plan {
namespace {

class Climber {
 public:
  Climber(const Objective& objective, const SearchOptions& options, Evaluated start,
          const std::function<bool()>& expired, int64_t& evaluations)
      : objective_(objective),
        options_(options),
        best_(std::move(start)),
        expired_(expired),
        evaluations_(evaluations) {}

  Evaluated climb() && {
    bool better = true;
    while (better && !expired_())
      better = (move_cuts() | move_replicas() | change_micro_batches() | change_rest()) != 0;
    return std::move(best_);
  }

 private:
  // Whether it is better; then it is the new best.
  bool try_layout(const Layout& layout) {
    if (expired_() || !objective_.possible(layout)) return false;
    Evaluated result = objective_.cost(layout);
    if (!result.fits() || lower_bound(layout.shape(), result.times) >= best_.seconds) return false;
    result.seconds = objective_.steps().step_seconds(layout.shape(), result.times);
    ++evaluations_;
    if (result.seconds >= best_.seconds) return false;
    best_ = std::move(result);
    return true;
  }

  int move_cuts() {
    bool better = false;
    for (size_t place = 1; place + 1 < best_.layout.cuts.size(); ++place)
      while (move_cut(place)) better = true;
    return better;
  }

  // To any cut between its neighbours, if they are not in a line; else near, farther, far.
  bool move_cut(size_t place) {
    const graph::Cuts& cuts = objective_.cuts();
    const Layout from = best_.layout;
    const auto now = static_cast<int64_t>(from.cuts[place]);
    std::vector<int64_t> targets;
    if (cuts.linear())
      for (const int64_t step : {1, 2, 3, 5, 8, 16, 32}) {
        targets.push_back(now - step);
        targets.push_back(now + step);
      }
    else
      for (size_t cut = from.cuts[place - 1] + 1; cut < from.cuts[place + 1]; ++cut)
        targets.push_back(static_cast<int64_t>(cut));
    for (const int64_t target : targets) {
      if (target <= 0 || target >= static_cast<int64_t>(cuts.last())) continue;
      const auto cut = static_cast<size_t>(target);
      if (!cuts.contains(cut, from.cuts[place - 1]) || !cuts.contains(from.cuts[place + 1], cut))
        continue;
      Layout changed = from;
      changed.cuts[place] = cut;
      if (try_layout(changed)) return true;
    }
    return false;
  }

  // One replica more, one less, or from one group to another. On many groups only neighbours and
  // the slowest are tried.
  int move_replicas() {
    bool better = false;
    const int groups = best_.layout.groups();
    for (int to = 0; to < groups; ++to) {
      better |= change_replicas(to, +1, -1, 0) || change_replicas(to, -1, -1, 0);
      for (int from = 0; from < groups; ++from)
        if (from != to && (groups <= 8 || from == slowest_group() || to == slowest_group()))
          better |= change_replicas(to, +1, from, -1);
    }
    return better;
  }

  int slowest_group() const {
    const auto slowest = std::ranges::max_element(best_.times, {}, &StageTimes::compute);
    return best_.layout.shape().group_of(static_cast<int>(slowest - best_.times.begin()));
  }

  bool change_replicas(int group, int by, int other, int other_by) {
    Layout changed = best_.layout;
    changed.placement = Placement::together;
    changed.replicas[at(group)] += by;
    if (other >= 0) changed.replicas[at(other)] += other_by;
    if (*std::ranges::min_element(changed.replicas) < 1) return false;
    return try_layout(changed);
  }

  int change_micro_batches() {
    bool better = false;
    for (const int m : micro_batches_) {
      Layout changed = best_.layout;
      changed.micro_batches = m;
      if (m != best_.layout.micro_batches) better |= try_layout(changed);
    }
    return better;
  }

  int change_rest() {
    bool better = false;
    for (const ScheduleKind kind : options_.schedules)
      for (const bool sharded : options_.sharded)
        for (const Placement placement : {Placement::together, Placement::apart}) {
          Layout changed = best_.layout;
          changed.schedule = kind;
          changed.sharded_optimizer = sharded;
          changed.placement = placement;
          if (changed != best_.layout) better |= try_layout(changed);
        }
    return better;
  }

  const Objective& objective_;
  const SearchOptions& options_;
  std::vector<int> micro_batches_ = all_micro_batches(objective_.problem().batch, options_);
  Evaluated best_;
  const std::function<bool()>& expired_;
  int64_t& evaluations_;
};

}  // namespace

Evaluated refine(const Objective& objective, const SearchOptions& options, Evaluated start,
                 const std::function<bool()>& expired, int64_t& evaluations) {
  return Climber(objective, options, std::move(start), expired, evaluations).climb();
}

}  // namespace renkei::plan
