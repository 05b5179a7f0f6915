#include "report/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "report/replay.h"
#include "timeline/recorder.h"

namespace renkei::report {
namespace {

using schedule::TaskKind;
using timeline::Category;

constexpr size_t kMostReplays = 60;
// A gain below this share of a step is not worth a word.
constexpr double kWorthwhile = 0.02;

// Evenly from all but the warm-up.
std::vector<const RecordedStep*> chosen_steps(const std::vector<RecordedStep>& steps) {
  const size_t first = steps.size() > 2 * kWarmUpSteps ? kWarmUpSteps : 0;
  const size_t count = steps.size() - first, chosen = std::min(count, kMostReplays);
  std::vector<const RecordedStep*> list;
  for (size_t i = 0; i < chosen; ++i) list.push_back(&steps[first + i * count / chosen]);
  return list;
}

using Change = std::function<void(const RecordedStep&, ReplayTimes&)>;

double replayed_seconds(const std::vector<const RecordedStep*>& steps, const Change& change) {
  std::vector<double> seconds;
  for (const RecordedStep* step : steps) {
    ReplayTimes times = times_of(*step);
    change(*step, times);
    seconds.push_back(replay(*step, times).seconds);
  }
  return timeline::quantile(std::move(seconds), 0.5);
}

double compute_seconds(const RecordedStep::Rank& rank) {
  double seconds = 0;
  for (const RecordedTask& task : rank.tasks)
    if (is_compute(task.task.kind)) seconds += task.seconds();
  return seconds;
}

// Twice the micro-batches, each of half the work: the bubble halves, what a task costs by itself
// does not grow.
double saved_by_more_micro_batches(const RecordedStep& step, const Attribution& attribution) {
  const int stages = step.stages, m = step.micro_batches;
  const double before = static_cast<double>(m + stages - 1) / m;
  const double after = static_cast<double>(2 * m + stages - 1) / (2 * m);
  const double bubble = attribution.all[Category::bubble];
  const double ideal = before - 1, rest = after - 1;
  return ideal > 0 ? bubble * (1 - rest / ideal) : 0;
}

}  // namespace

std::optional<SlowRank> slowest_rank(const std::vector<RecordedStep>& steps, double at_least) {
  if (steps.empty()) return {};
  const size_t ranks = steps[0].ranks.size();
  std::vector<std::vector<double>> compute(ranks);
  for (const RecordedStep* step : chosen_steps(steps))
    for (size_t r = 0; r < ranks; ++r) compute[r].push_back(compute_seconds(step->ranks[r]));
  std::vector<double> usual;
  for (auto& list : compute) usual.push_back(timeline::quantile(std::move(list), 0.5));
  SlowRank worst;
  for (int stage = 0; stage < steps[0].stages; ++stage) {
    const auto& replicas = steps[0].ranks_of[static_cast<size_t>(stage)];
    if (replicas.size() < 2) continue;
    std::vector<double> theirs;
    for (const int rank : replicas) theirs.push_back(usual[static_cast<size_t>(rank)]);
    std::ranges::sort(theirs);
    const double median = theirs[(theirs.size() - 1) / 2];
    for (const int rank : replicas) {
      const double slower = median > 0 ? usual[static_cast<size_t>(rank)] / median - 1 : 0;
      if (slower > worst.slower) worst = {rank, slower};
    }
  }
  if (worst.slower < at_least) return {};
  return worst;
}

WhatIfs what_if(const std::vector<RecordedStep>& steps, const Attribution& attribution) {
  WhatIfs result;
  if (steps.empty()) return result;
  const auto chosen = chosen_steps(steps);
  std::vector<double> measured;
  for (const RecordedStep* step : chosen) measured.push_back(step->seconds());
  result.measured_seconds = timeline::quantile(std::move(measured), 0.5);
  result.replay_seconds = replayed_seconds(chosen, [](const RecordedStep&, ReplayTimes&) {});
  if (result.replay_seconds <= 0) return result;
  const double scale = result.measured_seconds / result.replay_seconds;
  const double step = attribution.all.seconds;
  const auto add = [&](std::string cause, std::string advice, double seconds) {
    result.list.push_back({.cause = std::move(cause),
                           .advice = std::move(advice),
                           .step_seconds = seconds,
                           .replay_error = result.replay_error()});
  };
  // Means are of all steps; those that were replayed may be longer or shorter.
  const auto without_share = [&](double saved) {
    return result.measured_seconds * (1 - saved / attribution.step_seconds);
  };
  const auto try_change = [&](std::string cause, std::string advice, const Change& change) {
    add(std::move(cause), std::move(advice), scale * replayed_seconds(chosen, change));
  };
  const timeline::StepTimes& all = attribution.all;
  const size_t ranks = attribution.ranks.size();
  if (ranks > 1) {
    if (const auto slow = slowest_rank(steps))
      try_change(
          fmt::format("rank {} as fast as the median", slow->rank),
          fmt::format("look at the host of rank {}: clock, other work on its cores, memory",
                      slow->rank),
          [&](const RecordedStep& s, ReplayTimes& t) { rank_as_its_median(s, slow->rank, t); });
    else if (all[Category::wait] > kWorthwhile * step)
      try_change("all replicas as fast as their median",
                 "the slowest rank changes from step to step: give each rank cores of its own",
                 equal_ranks);
    try_change("no communication at all", "see what the other lines can save of it",
               [](const RecordedStep&, ReplayTimes& t) { without_communication(t); });
    try_change("16 bits on the wire", "--set comm.wire=f16 sends half the bytes",
               [](const RecordedStep&, ReplayTimes& t) { half_the_bytes(t); });
  }
  if (steps[0].stages > 1) {
    try_change("stages balanced", "plan again with measured costs: --plan auto", balanced_stages);
    add(fmt::format("{} micro-batches in place of {}", 2 * steps[0].micro_batches,
                    steps[0].micro_batches),
        fmt::format("--micro-batches {}", 2 * steps[0].micro_batches),
        without_share(saved_by_more_micro_batches(steps[0], attribution)));
  }
  if (all[Category::data] > 0.001 * step)
    try_change("data always there", "more --set data.threads, faster storage, or smaller samples",
               [](const RecordedStep&, ReplayTimes& t) { without_loading(t); });
  if (all[Category::checkpoint] > 0)
    add("no checkpoints", "save less often", without_share(all[Category::checkpoint]));
  std::ranges::stable_sort(result.list, {}, &WhatIf::step_seconds);
  return result;
}

namespace {

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

const WhatIf* find(const WhatIfs& what_ifs, std::string_view beginning) {
  for (const WhatIf& one : what_ifs.list)
    if (one.cause.starts_with(beginning)) return &one;
  return nullptr;
}

// What a category has to say for itself.
class Speaker {
 public:
  Speaker(const std::vector<RecordedStep>& steps, const Attribution& attribution,
          const WhatIfs& what_ifs)
      : steps_(steps), attribution_(attribution), what_ifs_(what_ifs) {}

  Verdict about(Category cause) const {
    Verdict verdict{.cause = std::string(name_of(cause))};
    const double seconds = attribution_.all[cause];
    const std::string share = percent(seconds / attribution_.all.seconds);
    const std::string time = format_duration(seconds);
    switch (cause) {
      case Category::wait:
        return about_waiting(std::move(verdict));
      case Category::imbalance:
        return with(std::move(verdict), "stages balanced",
                    fmt::format("the stages have unequal work: rank {} computes {} of a step, rank "
                                "{} {}; the others wait {} a step for it",
                                most_busy(), format_duration(busy(most_busy())), least_busy(),
                                format_duration(busy(least_busy())), time));
      case Category::bubble:
        return with(std::move(verdict), fmt::format("{} micro", 2 * steps_[0].micro_batches),
                    fmt::format("the pipeline of {} stages fills and empties with only {} "
                                "micro-batches: {} of a step ({}) is bubble",
                                steps_[0].stages, steps_[0].micro_batches, time, share));
      case Category::communication:
        return with(std::move(verdict), "16 bits",
                    fmt::format("ranks exchange data for {} of a step ({}) that computing does not "
                                "hide",
                                time, share));
      case Category::data:
        return with(
            std::move(verdict), "data always",
            fmt::format("data comes too late: ranks wait {} of a step ({}) for it", time, share));
      case Category::checkpoint:
        return with(std::move(verdict), "no checkpoints",
                    fmt::format("saving takes {} of a step ({})", time, share));
      case Category::update:
        verdict.sentence =
            fmt::format("updating the parameters takes {} of a step ({})", time, share);
        verdict.advice = "a larger batch updates less often";
        return verdict;
      default:
        verdict.sentence = fmt::format("{} of a step ({}) is {}", time, share, name_of(cause));
        return verdict;
    }
  }

 private:
  double busy(int rank) const {
    return attribution_.ranks[static_cast<size_t>(rank)][Category::compute];
  }
  int most_busy() const {
    return extreme([](double a, double b) { return a > b; });
  }
  int least_busy() const {
    return extreme([](double a, double b) { return a < b; });
  }
  template <typename Before>
  int extreme(Before before) const {
    int best = 0;
    for (size_t r = 0; r < attribution_.ranks.size(); ++r)
      if (before(busy(static_cast<int>(r)), busy(best))) best = static_cast<int>(r);
    return best;
  }

  Verdict with(Verdict verdict, std::string_view what_if, std::string sentence) const {
    verdict.sentence = std::move(sentence);
    if (verdict.cause == "imbalance") verdict.rank = most_busy();
    if (const WhatIf* found = find(what_ifs_, what_if)) {
      verdict.advice = found->advice;
      verdict.gain_seconds = what_ifs_.measured_seconds - found->step_seconds;
    }
    return verdict;
  }

  Verdict about_waiting(Verdict verdict) const {
    const size_t ranks = attribution_.ranks.size();
    std::vector<double> waited(ranks);
    for (const auto& row : attribution_.waited_for)
      for (size_t other = 0; other < ranks; ++other) waited[other] += row[other];
    const auto culprit = static_cast<int>(std::ranges::max_element(waited) - waited.begin());
    double all = 0;
    for (const double seconds : waited) all += seconds;
    const std::string time = format_duration(attribution_.all[Category::wait]);
    if (const auto slow = slowest_rank(steps_)) {
      verdict.rank = slow->rank;
      const auto others = static_cast<double>(std::max<size_t>(1, ranks - 1));
      return with(std::move(verdict), "rank",
                  fmt::format("rank {} computes {} slower than the median of its replicas; the "
                              "others wait {} a step for it",
                              slow->rank, percent(slow->slower),
                              format_duration(waited[static_cast<size_t>(slow->rank)] / others)));
    }
    return with(std::move(verdict), "all replicas",
                fmt::format("ranks wait {} a step for each other, {} of it for rank {}; no rank is "
                            "slower than the others all the time",
                            time, percent(all > 0 ? waited[static_cast<size_t>(culprit)] / all : 0),
                            culprit));
  }

  const std::vector<RecordedStep>& steps_;
  const Attribution& attribution_;
  const WhatIfs& what_ifs_;
};

}  // namespace

Verdict verdict_of(const std::vector<RecordedStep>& steps, const Attribution& attribution,
                   const WhatIfs& what_ifs) {
  const timeline::StepTimes& all = attribution.all;
  if (steps.empty() || all.seconds <= 0)
    return {.cause = "none", .sentence = "no step was recorded in whole"};
  Category largest = Category::communication;
  for (const Category cause : {Category::wait, Category::imbalance, Category::bubble,
                               Category::data, Category::update, Category::checkpoint})
    if (all[cause] > all[largest]) largest = cause;
  Verdict verdict;
  if (all[largest] < kWorthwhile * all.seconds) {
    verdict = {.cause = "none",
               .sentence =
                   fmt::format("{} of a step is computing; no other cause takes more than {}",
                               percent(all[Category::compute] / all.seconds), percent(kWorthwhile)),
               .advice = attribution.ranks.size() == 1 ? "more ranks make it faster"
                                                       : "more ranks, or faster ones"};
  } else {
    verdict = Speaker(steps, attribution, what_ifs).about(largest);
  }
  for (int c = 0; c < timeline::kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (all[category] >= 0.005 * all.seconds)
      verdict.evidence.push_back(fmt::format("{}: {} of a step, {:.1f} %", name_of(category),
                                             format_duration(all[category]),
                                             100 * all[category] / all.seconds));
  }
  return verdict;
}

}  // namespace renkei::report
