#include "plan/proposals.h"

#include <algorithm>
#include <cmath>

#include "plan/at.h"
#include "plan/split_table.h"

namespace renkei::plan {
namespace {

constexpr size_t kKept = 6;       // proposals of a family
constexpr int kMostStages = 128;  // that are proposed
constexpr int kMostUnits = 16;    // of devices that are divided freely
constexpr int kMostPlaces = 16;   // stages for which the place of devices counts
constexpr double kWorthATry = 1.1;

// Numbers of devices of each stage: those that divide all evenly, and those that leave the fewest
// idle for a small number of stages.
std::vector<int> replica_choices(int devices) {
  std::set<int> choices;
  for (int stages = 1; stages <= devices; ++stages)
    if (stages <= 16 || devices % stages == 0) choices.insert(devices / stages);
  return {choices.begin(), choices.end()};
}

// The share of forward in all work, unless it is about the same all over the model: then bounds on
// both together are as good.
std::optional<double> uneven_forward_share(const Objective& objective) {
  constexpr double kEven = 0.02;
  const graph::Cuts& cuts = objective.cuts();
  const auto batch = static_cast<double>(objective.problem().graph.batch);
  const auto before = [&](size_t cut) {
    const graph::Seconds s = cuts.seconds(0, 0, cut);
    return std::pair(s.forward.at(batch), s.total_at(batch));
  };
  const auto [forward, all] = before(cuts.last());
  if (forward <= 0 || forward >= all) return std::nullopt;
  for (const size_t cut : chain_of_cuts(objective)) {
    const auto [forward_before, all_before] = before(cut);
    if (std::abs(forward_before / forward - all_before / all) > kEven) return forward / all;
  }
  return std::nullopt;
}

}  // namespace

Proposer::Proposer(const Objective& objective, const SearchOptions& options,
                   const std::function<bool()>& expired, Findings& findings)
    : objective_(objective),
      options_(options),
      expired_(expired),
      findings_(findings),
      devices_(static_cast<int>(objective.problem().devices.size())) {
  if (allows(ScheduleKind::interleaved))
    for (const int chunks : options.chunks) most_chunks_ = std::max(most_chunks_, chunks);
  most_stages_ = std::min(static_cast<int>(objective.cuts().size()) - 1, kMostStages);
  differing_devices_ = objective.group({0, 1, devices_}).kinds.size() > 1;
  if (allows(ScheduleKind::gpipe)) forward_share_ = uneven_forward_share(objective);
}

bool Proposer::allows(ScheduleKind kind) const {
  return std::ranges::count(options_.schedules, kind) > 0;
}

void Proposer::propose_equal_times() {
  const std::vector<int> choices = micro_batch_choices(objective_.problem().batch, options_);
  const auto all = static_cast<double>(objective_.problem().batch);
  for (int groups = 2; groups <= std::min(devices_, most_stages_); ++groups) {
    if (groups > 16 && devices_ % groups != 0 && groups != most_stages_) continue;
    const Split split =
        equal_times(objective_, std::vector<int>(at(groups), devices_ / groups), all);
    for (const int m : choices) {
      if (expired_() && findings_.best()) return;
      keep(m, split, false);
    }
    evaluate_newest();
  }
}

void Proposer::propose_splits(int m) {
  for (const int r : replica_choices(devices_)) {
    if (expired_()) return;
    if (hopeless(m, r)) continue;
    SplitOptions uniform{.micro_batches = m,
                         .unit = r,
                         .units = devices_ / r,
                         .most_stages = std::min(most_stages_, devices_ / r * most_chunks_),
                         .most_cuts = 256};
    propose(uniform);
    uniform.most_stages = std::min(most_stages_, devices_ / r);
    for (int n = 2; differing_devices_ && n <= std::min(uniform.most_stages, kMostPlaces); ++n) {
      SplitOptions by_place = uniform;
      by_place.by_place = true;
      by_place.units = by_place.most_stages = n;
      by_place.most_cuts = 64;
      propose(by_place);
    }
  }
  const int unit = std::max(1, (devices_ + kMostUnits - 1) / kMostUnits);
  if (devices_ < 2 || expired_() || hopeless(m, unit)) return;
  // Devices that are left out are the last, which are the slowest.
  for (int used = devices_; used >= 2; --used) {
    const auto kind = [&](int device) { return objective_.problem().devices[at(device)].kind; };
    if (used < devices_ && kind(used - 1) == kind(used)) continue;
    if (used / unit == 0) break;
    propose({.micro_batches = m,
             .unit = unit,
             .units = used / unit,
             .uniform = false,
             .most_stages = std::min({most_stages_, used / unit, 12}),
             .by_place = differing_devices_,
             .most_cuts = 48});
  }
}

void Proposer::propose(const SplitOptions& options) {
  for (const Split& split : plan::propose_splits(objective_, options, expired_))
    keep(options.micro_batches, split, false);
  evaluate_newest();
  if (!forward_share_) return;
  SplitOptions for_gpipe = options;
  for_gpipe.forward_share = *forward_share_;
  for (const Split& split : plan::propose_splits(objective_, for_gpipe, expired_))
    keep(options.micro_batches, split, true);
}

// Whether even perfectly balanced stages, with a bubble that is short for their number, would take
// much longer than what is known.
bool Proposer::hopeless(int m, int replicas) const {
  if (objective_.problem().batch / m < replicas) return true;
  if (!findings_.best()) return false;
  const int stages = devices_ / replicas;
  // Zero bubble has a third of the bubble of 1F1B.
  const double bubble = static_cast<double>(stages - 1) / std::max(3, most_chunks_);
  const double work = objective_.least_work(objective_.samples(m, replicas));
  return (m + bubble) * work / stages > kWorthATry * findings_.best()->seconds;
}

// For each way to run a split on groups of devices.
void Proposer::keep(int m, const Split& split, bool for_gpipe) {
  const auto stages = static_cast<int>(split.cuts.size()) - 1;
  if (stages == 1 || (options_.stages && *options_.stages != stages)) return;
  Layout layout{.schedule = ScheduleKind::one_f_one_b,
                .micro_batches = m,
                .cuts = split.cuts,
                .replicas = split.replicas};
  std::vector<ScheduleKind> kinds;
  for (const ScheduleKind kind : options_.schedules)
    if (kind != ScheduleKind::accumulate && kind != ScheduleKind::interleaved &&
        (!for_gpipe || kind == ScheduleKind::gpipe))
      kinds.push_back(kind);
  if (layout.devices() <= devices_ && !kinds.empty()) keep(layout, kinds);
  const bool uniform =
      std::ranges::adjacent_find(split.replicas, std::not_equal_to<>()) == split.replicas.end();
  if (!uniform || for_gpipe || !allows(ScheduleKind::interleaved)) return;
  layout.schedule = ScheduleKind::interleaved;
  for (const int chunks : options_.chunks) {
    if (stages % chunks != 0 || stages / chunks < 2) continue;
    layout.chunks = chunks;
    layout.replicas.assign(at(stages / chunks), split.replicas.front());
    if (layout.devices() <= devices_) keep(layout, {ScheduleKind::interleaved});
  }
}

void Proposer::keep(Layout layout, const std::vector<ScheduleKind>& kinds) {
  layout.sharded_optimizer = false;
  if (!objective_.possible(layout)) return;
  Evaluated costs = objective_.cost(layout);
  layout.sharded_optimizer = true;
  if (!costs.fits() && objective_.possible(layout)) costs = objective_.cost(layout);
  layout = costs.layout;
  if (!costs.fits()) {  // it may be the one that lacks the least; 1F1B needs less than others
    if (std::ranges::count(kinds, layout.schedule) == 0) layout.schedule = kinds.front();
    return findings_.consider(layout);
  }
  for (const ScheduleKind kind : kinds) {
    layout.schedule = kind;
    Proposal proposal{estimate(layout.shape(), costs.times), layout};
    if (!newest_ || proposal < *newest_) newest_ = proposal;
    std::set<Proposal>& family = proposals_[family_of(layout)];
    family.insert(std::move(proposal));
    if (family.size() > kKept) family.erase(std::prev(family.end()));
  }
}

void Proposer::evaluate_newest() {
  if (newest_ && (!findings_.best() || newest_->estimate < findings_.best()->seconds))
    findings_.consider_variants(newest_->layout, options_);
  newest_.reset();
}

}  // namespace renkei::plan
