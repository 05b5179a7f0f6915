#include "plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/units.h"
#include "plan/exact.h"
#include "plan/refine.h"
#include "plan/splits.h"

namespace renkei::plan {
namespace {

constexpr size_t kEvaluated = 64;     // proposals that are evaluated with all schedules
constexpr size_t kRefined = 12;       // of which so many are refined
constexpr size_t kRejected = 8;       // alternatives that are told
constexpr int kMostStages = 128;      // that dynamic programming proposes
constexpr int kMostUnits = 16;        // of devices that it divides freely
constexpr double kMostLayouts = 1e8;  // that branch and bound is tried on

bool has(const std::vector<ScheduleKind>& kinds, ScheduleKind kind) {
  return std::ranges::count(kinds, kind) > 0;
}

// Numbers of devices of each stage: those that divide all evenly, and those that leave the fewest
// idle for a small number of stages.
std::vector<int> replica_choices(int devices) {
  std::set<int> choices;
  for (int stages = 1; stages <= devices; ++stages)
    if (stages <= 16 || devices % stages == 0) choices.insert(devices / stages);
  return {choices.begin(), choices.end()};
}

class Search {
 public:
  Search(const Objective& objective, const SearchOptions& options)
      : objective_(objective),
        options_(options),
        devices_(static_cast<int>(objective.problem().devices.size())),
        begin_(now_seconds()),
        expired_([this] { return now_seconds() - begin_ > options_.time_limit_seconds; }) {}

  SearchResult run() {
    data_parallel();
    propose();
    evaluate_proposals();
    refine_best();
    branch();
    finish();
    return std::move(result_);
  }

 private:
  void tell(const std::string& doing, int64_t done, int64_t total) {
    if (options_.progress)
      options_.progress({doing, done, total, result_.best ? result_.best->seconds : 0});
  }

  // The best layout of each kind is kept, to tell why it lost.
  void consider(const Layout& layout) {
    if (!objective_.possible(layout)) return;
    Evaluated result = objective_.cost(layout);
    const auto kind = std::pair(layout.schedule, layout.groups());
    const auto known = best_of_kind_.find(kind);
    const bool known_fits = known != best_of_kind_.end() && known->second.fits();
    if (result.fits()) {
      const double bound = lower_bound(layout.shape(), result.times);
      if (known_fits && bound >= known->second.seconds) return;
      if (result_.best && bound >= kHopeless * result_.best->seconds && known_fits) return;
      result.seconds = objective_.steps().step_seconds(layout.shape(), result.times);
      ++result_.evaluations;
      if (known_fits && result.seconds >= known->second.seconds) return;
    } else if (known != best_of_kind_.end() &&
               (known_fits || result.missing_bytes >= known->second.missing_bytes)) {
      return;
    }
    if (result.fits() && (!result_.best || result.seconds < result_.best->seconds))
      result_.best = result;
    best_of_kind_.insert_or_assign(kind, std::move(result));
  }

  void data_parallel() {
    if (!has(options_.schedules, ScheduleKind::accumulate)) return;
    if (options_.stages.value_or(1) != 1) return;
    for (int replicas = 1; replicas <= devices_; ++replicas) {
      if (devices_ > 64 && devices_ % replicas != 0) continue;
      for (const int m : choices_)
        for (const bool sharded : options_.sharded)
          consider({.micro_batches = m,
                    .sharded_optimizer = sharded,
                    .cuts = {0, objective_.cuts().last()},
                    .replicas = {replicas}});
    }
  }

  void propose() {
    const int most_chunks =
        has(options_.schedules, ScheduleKind::interleaved) && !options_.chunks.empty()
            ? *std::ranges::max_element(options_.chunks)
            : 1;
    const auto cuts = static_cast<int>(objective_.cuts().size()) - 1;
    const int most_stages = std::min(cuts, kMostStages);
    const std::vector<int> replicas = replica_choices(devices_);
    const int unit = std::max(1, (devices_ + kMostUnits - 1) / kMostUnits);
    const auto total = static_cast<int64_t>(choices_.size() * (replicas.size() + 1));
    int64_t done = 0;
    for (const int m : choices_) {
      for (const int r : replicas) {
        tell("splitting", done++, total);
        if (expired_()) return;
        if (hopeless(m, r, most_chunks)) continue;
        const int stages = std::min(most_stages, devices_ / r * most_chunks);
        keep(m, {.micro_batches = m,
                 .unit = r,
                 .units = devices_ / r,
                 .uniform = true,
                 .most_stages = stages,
                 .most_cuts = 256});
      }
      tell("splitting", done++, total);
      if (devices_ < 2 || expired_() || hopeless(m, unit, 1)) continue;
      keep(m, {.micro_batches = m,
               .unit = unit,
               .units = devices_ / unit,
               .uniform = false,
               .most_stages = std::min({most_stages, devices_ / unit, 12}),
               .most_cuts = 48});
    }
  }

  // Whether even perfectly balanced stages, with a bubble that is short for their number, would
  // take much longer than what is known.
  bool hopeless(int m, int replicas, int chunks) const {
    if (objective_.problem().batch / m < replicas) return true;
    double known = result_.best ? result_.best->seconds : 1e300;
    if (!proposals_.empty()) known = std::min(known, proposals_.begin()->estimate);
    const int stages = devices_ / replicas;
    const double samples = objective_.samples(m, replicas);
    const graph::Cuts& cuts = objective_.cuts();
    const graph::Seconds all =
        cuts.seconds(objective_.problem().machine.kinds.size(), 0, cuts.last());
    const double work =
        all.forward.at(samples) + all.backward_input.at(samples) + all.backward_weight.at(samples);
    // Zero bubble has a third of the bubble of 1F1B.
    const double bubble = static_cast<double>(stages - 1) / std::max(3, chunks);
    return (m + bubble) * work / stages > kWorthATry * known;
  }

  struct Proposal {
    double estimate;
    int micro_batches;
    int chunks;
    Split split;

    // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
    auto operator<=>(const Proposal&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  // For each way to run a split on groups of devices, an estimate of the step.
  void keep(int m, const SplitOptions& how) {
    for (Split& split : propose_splits(objective_, how)) {
      const auto stages = static_cast<int>(split.cuts.size()) - 1;
      if (stages == 1 || (options_.stages && *options_.stages != stages)) continue;
      if (stages * how.unit <= devices_ || !how.uniform) keep(m, 1, split);
      if (!how.uniform || !has(options_.schedules, ScheduleKind::interleaved)) continue;
      for (const int chunks : options_.chunks)
        if (stages % chunks == 0 && stages / chunks >= 2 && stages / chunks * how.unit <= devices_)
          keep(m, chunks,
               {split.cuts, {split.replicas.begin(), split.replicas.begin() + stages / chunks}});
    }
  }

  void keep(int m, int chunks, Split split) {
    Layout layout{.schedule = chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b,
                  .micro_batches = m,
                  .chunks = chunks,
                  .cuts = split.cuts,
                  .replicas = split.replicas};
    if (!objective_.possible(layout)) return;
    Evaluated costs = objective_.cost(layout);
    layout.sharded_optimizer = true;
    if (!costs.fits() && objective_.possible(layout)) costs = objective_.cost(layout);
    if (!costs.fits()) {
      consider(layout);  // it may be the one that lacks the least
      return;
    }
    proposals_.insert({estimate(layout, costs), m, chunks, std::move(split)});
    while (proposals_.size() > 4 * kEvaluated) proposals_.erase(std::prev(proposals_.end()));
  }

  // One micro-batch through all stages and back, and all others through the slowest group.
  static double estimate(const Layout& layout, const Evaluated& costs) {
    double way = 0, tail = 0;
    std::vector<double> work(costs.memory.size());
    for (int stage = 0; stage < layout.stages(); ++stage) {
      const StageTimes& times = costs.times[static_cast<size_t>(stage)];
      way += times.compute() + times.send_forward + times.send_backward;
      work[static_cast<size_t>(layout.shape().group_of(stage))] += times.compute();
      tail = std::max(tail, times.reduce / times.buckets + times.update);
    }
    const double fill = way / layout.chunks;
    return fill + (layout.micro_batches - 1) * *std::ranges::max_element(work) + tail;
  }

  // First the best of each number of groups, so that all kinds are compared, then the best of all.
  void evaluate_proposals() {
    std::vector<Proposal> chosen;
    std::map<std::pair<size_t, int>, int> of_kind;
    for (const Proposal& proposal : proposals_)
      if (chosen.size() < kEvaluated ||
          of_kind[{proposal.split.replicas.size(), proposal.chunks}] == 0) {
        ++of_kind[{proposal.split.replicas.size(), proposal.chunks}];
        chosen.push_back(proposal);
      }
    int64_t done = 0;
    for (const Proposal& proposal : chosen) {
      tell("evaluating", done++, static_cast<int64_t>(chosen.size()));
      if (expired_() && result_.best) return;
      for (const ScheduleKind kind : options_.schedules)
        for (const bool sharded : options_.sharded)
          for (const Placement placement : {Placement::together, Placement::apart})
            consider({.schedule = kind,
                      .micro_batches = proposal.micro_batches,
                      .chunks = proposal.chunks,
                      .sharded_optimizer = sharded,
                      .placement = placement,
                      .cuts = proposal.split.cuts,
                      .replicas = proposal.split.replicas});
    }
  }

  void refine_best() {
    std::vector<Evaluated> starts;
    for (const auto& [kind, evaluated] : best_of_kind_)
      if (evaluated.fits()) starts.push_back(evaluated);
    std::ranges::stable_sort(starts, {}, &Evaluated::seconds);
    if (starts.size() > kRefined) starts.resize(kRefined);
    int64_t done = 0;
    for (Evaluated& start : starts) {
      tell("refining", done++, static_cast<int64_t>(starts.size()));
      if (expired_()) return;
      const Evaluated refined =
          refine(objective_, options_, std::move(start), expired_, result_.evaluations);
      if (refined.seconds < result_.best->seconds) result_.best = refined;
      const auto kind = std::pair(refined.layout.schedule, refined.layout.groups());
      const auto known = best_of_kind_.find(kind);
      if (known == best_of_kind_.end() || !known->second.fits() ||
          refined.seconds < known->second.seconds)
        best_of_kind_.insert_or_assign(kind, refined);
    }
  }

  void branch() {
    if (options_.exact_nodes <= 0 || !objective_.cuts().complete() || expired_()) return;
    if (count_layouts(objective_, options_) > kMostLayouts) return;
    tell("branching", 0, 1);
    result_.exact = search_exactly(objective_, options_, options_.exact_nodes, expired_,
                                   result_.best, result_.evaluations);
  }

  void finish() {
    result_.timed_out = expired_();
    if (result_.best)
      result_.lower_bound_seconds = result_.exact
                                        ? result_.best->seconds
                                        : std::min(perfect_balance(), result_.best->seconds);
    for (const auto& [kind, evaluated] : best_of_kind_) {
      if (result_.best && evaluated.layout == result_.best->layout) continue;
      result_.rejected.push_back({evaluated, reason(evaluated)});
    }
    std::ranges::stable_sort(result_.rejected, [](const Alternative& a, const Alternative& b) {
      const auto rank = [](const Evaluated& e) {
        return std::pair(e.fits() ? 0 : 1, e.fits() ? e.seconds : e.missing_bytes);
      };
      return rank(a.evaluated) < rank(b.evaluated);
    });
    shorten_rejected();
    result_.search_seconds = now_seconds() - begin_;
  }

  // The list ends with one that does not fit, where there is one: data parallel training, if it is
  // that. Why it was not taken is what people ask first.
  void shorten_rejected() {
    std::vector<Alternative>& list = result_.rejected;
    if (list.size() <= kRejected) return;
    const auto does_not_fit = [](const Alternative& a) { return !a.evaluated.fits(); };
    auto kept = std::ranges::find_if(list, [&](const Alternative& a) {
      return does_not_fit(a) && a.evaluated.layout.groups() == 1;
    });
    if (kept == list.end()) kept = std::ranges::find_if(list, does_not_fit);
    if (kept != list.end() && kept >= list.begin() + kRejected)
      std::swap(list[kRejected - 1], *kept);
    list.resize(kRejected);
  }

  std::string reason(const Evaluated& evaluated) const {
    if (!evaluated.fits())
      return fmt::format("lacks {} of memory on a device",
                         format_size(static_cast<int64_t>(evaluated.missing_bytes)));
    if (!result_.best) return "";
    return fmt::format("{:.1f} % slower", 100 * (evaluated.seconds / result_.best->seconds - 1));
  }

  // All work, at the speed of the fastest devices, divided perfectly.
  double perfect_balance() const {
    const graph::Cuts& cuts = objective_.cuts();
    const graph::Seconds all =
        cuts.seconds(objective_.problem().machine.kinds.size(), 0, cuts.last());
    const double m = choices_.front();
    const double samples = static_cast<double>(objective_.problem().batch) / m;
    return m *
           (all.forward.at(samples) + all.backward_input.at(samples) +
            all.backward_weight.at(samples)) /
           devices_;
  }

  static constexpr double kWorthATry = 1.1;
  static constexpr double kHopeless = 1.5;  // this much slower is not worth an exact figure

  const Objective& objective_;
  const SearchOptions& options_;
  int devices_;
  double begin_;
  std::function<bool()> expired_;
  std::vector<int> choices_ = micro_batch_choices(objective_.problem().batch, options_);
  std::set<Proposal> proposals_;
  std::map<std::pair<ScheduleKind, int>, Evaluated> best_of_kind_;  // by schedule and groups
  SearchResult result_;
};

}  // namespace

std::vector<int> micro_batch_choices(int64_t batch, const SearchOptions& options) {
  if (!options.micro_batches.empty()) return options.micro_batches;
  constexpr int64_t kMost = 4096;
  std::vector<int> choices;
  for (int64_t m = 1; m <= std::min(batch, kMost); ++m)
    if (batch % m == 0 && (choices.empty() || static_cast<double>(m) >= 1.5 * choices.back()))
      choices.push_back(static_cast<int>(m));
  return choices;
}

SearchResult search(const Objective& objective, const SearchOptions& options) {
  return Search(objective, options).run();
}

}  // namespace renkei::plan
