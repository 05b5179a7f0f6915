#include "plan/search.h"

#include <algorithm>

#include "base/clock.h"
#include "plan/exact.h"
#include "plan/proposals.h"
#include "plan/refine.h"

namespace renkei::plan {
namespace {

constexpr int64_t kMostMicroBatches = 4096;  // a schedule lists what is done with each
constexpr double kWorthRefining = 1.25;      // of the best: slower ones do not catch up

class Search {
 public:
  Search(const Objective& objective, const SearchOptions& options)
      : objective_(objective),
        options_(options),
        devices_(static_cast<int>(objective.problem().devices.size())),
        begin_(now_seconds()),
        expired_([this] { return now_seconds() - begin_ > options_.time_limit_seconds; }),
        findings_(objective),
        proposer_(objective, options, expired_, findings_) {}

  SearchResult run() {
    data_parallel();
    if (!done()) proposer_.propose_equal_times();
    if (!done()) propose();
    if (!done()) evaluate();
    if (!done()) refine_families();
    if (!done()) branch();
    return finish();
  }

 private:
  bool done() const { return options_.first_fit && findings_.best(); }

  void tell(const std::string& doing, int64_t done, int64_t total) {
    if (options_.progress)
      options_.progress({doing, done, total, findings_.best() ? findings_.best()->seconds : 0});
  }

  // One stage, with every number of micro-batches. Of the numbers of replicas that have as many
  // samples at most, the smallest counts, or all devices.
  void data_parallel() {
    if (std::ranges::count(options_.schedules, ScheduleKind::accumulate) == 0) return;
    if (options_.stages.value_or(1) != 1) return;
    for (const int m : all_micro_batches(objective_.problem().batch, options_))
      for (int replicas = devices_; replicas >= 1; --replicas) {
        const double samples = objective_.samples(m, replicas);
        if (replicas < devices_ && replicas > 1 && objective_.samples(m, replicas - 1) == samples)
          continue;
        if (findings_.best() &&
            (expired_() || m * objective_.least_work(samples) > findings_.best()->seconds))
          break;  // fewer take even longer
        for (const bool sharded : options_.sharded)
          findings_.consider({.micro_batches = m,
                              .sharded_optimizer = sharded,
                              .cuts = {0, objective_.cuts().last()},
                              .replicas = {replicas}});
      }
  }

  void propose() {
    const std::vector<int> choices = micro_batch_choices(objective_.problem().batch, options_);
    for (size_t i = 0; i < choices.size() && !done(); ++i) {
      tell("splitting", static_cast<int64_t>(i), static_cast<int64_t>(choices.size()));
      if (expired_()) return;
      proposer_.propose_splits(choices[i]);
    }
  }

  void evaluate() {
    int64_t number = 0;
    for (const auto& [family, proposals] : proposer_.proposals()) {
      tell("evaluating", number++, static_cast<int64_t>(proposer_.proposals().size()));
      for (const Proposal& proposal : proposals) {
        if (done() || (expired_() && findings_.best())) return;
        findings_.consider_variants(proposal.layout, options_);
      }
    }
  }

  // Each family by itself; then the best of all, which may change its family.
  void refine_families() {
    const std::vector<Evaluated> starts = findings_.fitting();
    int64_t number = 0;
    for (const Evaluated& start : starts) {
      tell("refining", number++, static_cast<int64_t>(starts.size()));
      if (expired_()) return;
      if (start.seconds > kWorthRefining * findings_.best()->seconds || can_not_win(start.layout))
        continue;
      SearchOptions own = options_;
      own.schedules = {start.layout.schedule};
      findings_.take(refine(objective_, own, start, expired_, findings_.evaluations));
    }
    if (findings_.best())
      findings_.take(
          refine(objective_, options_, *findings_.best(), expired_, findings_.evaluations));
  }

  bool can_not_win(const Layout& layout) const {
    Shape shape = layout.shape();
    return std::ranges::all_of(all_micro_batches(objective_.problem().batch, options_), [&](int m) {
      shape.micro_batches = m;
      const double work = objective_.least_work(objective_.samples(m, 1));
      return least_seconds(shape, devices_, work) >= findings_.best()->seconds;
    });
  }

  void branch() {
    if (options_.exact_nodes <= 0 || !objective_.cuts().complete() || expired_()) return;
    tell("branching", 0, 1);
    std::optional<Evaluated> best = findings_.best();
    const bool all =
        !options_.micro_batches.empty() || objective_.problem().batch <= kMostMicroBatches;
    exact_ = search_exactly(objective_, options_, expired_, best, findings_.evaluations) && all;
    if (best) findings_.take(*best);
  }

  SearchResult finish() {
    SearchResult result{.best = findings_.best(),
                        .exact = exact_,
                        .timed_out = expired_(),
                        .evaluations = findings_.evaluations,
                        .rejected = findings_.rejected()};
    if (result.best)
      result.lower_bound_seconds =
          exact_ ? result.best->seconds : std::min(perfect_balance(), result.best->seconds);
    result.search_seconds = now_seconds() - begin_;
    return result;
  }

  // All work, at the speed of the fastest devices, divided perfectly. Fewer micro-batches have less
  // of what does not depend on samples.
  double perfect_balance() const {
    const int m = all_micro_batches(objective_.problem().batch, options_).front();
    return m * objective_.least_work(static_cast<double>(objective_.problem().batch) / m) /
           devices_;
  }

  const Objective& objective_;
  const SearchOptions& options_;
  int devices_;
  double begin_;
  std::function<bool()> expired_;
  Findings findings_;
  Proposer proposer_;
  bool exact_ = false;
};

}  // namespace

std::vector<int> all_micro_batches(int64_t batch, const SearchOptions& options) {
  if (!options.micro_batches.empty()) return options.micro_batches;
  std::vector<int> all;
  for (int m = 1; m <= std::min(batch, kMostMicroBatches); ++m)
    if (batch % m == 0) all.push_back(m);
  return all;
}

std::vector<int> micro_batch_choices(int64_t batch, const SearchOptions& options) {
  if (!options.micro_batches.empty()) return options.micro_batches;
  std::vector<int> choices;
  for (const int m : all_micro_batches(batch, options))
    if (choices.empty() || m >= 1.5 * choices.back()) choices.push_back(m);
  return choices;
}

SearchResult search(const Objective& objective, const SearchOptions& options) {
  return Search(objective, options).run();
}

}  // namespace renkei::plan
