#include "report/attribution.h"

#include <algorithm>
#include <map>

#include "report/replay.h"

namespace renkei::report {
namespace {

using schedule::TaskKind;
using timeline::Category;
using timeline::StepTimes;

// The last rank that came to a task which several do together.
struct Last {
  double begin = -1;
  int rank = -1;
};

class StepDivision {
 public:
  explicit StepDivision(const RecordedStep& step)
      : step_(step), idle_(step.ranks.size()), waited_(step.ranks.size(), idle_) {
    for (size_t r = 0; r < step.ranks.size(); ++r)
      for (const RecordedTask& task : step.ranks[r].tasks) {
        Last& last = last_[{task.task.kind, task.task.stage}];
        if (task.begin > last.begin) last = {task.begin, static_cast<int>(r)};
        if (task.task.kind == TaskKind::send)
          sent_[{static_cast<int>(r), task.peer, task.task.stage, task.task.peer,
                 task.task.micro_batch}] = task.begin;
      }
    for (size_t r = 0; r < step.ranks.size(); ++r) times_.push_back(divide(static_cast<int>(r)));
    divide_idle();
  }

  const std::vector<StepTimes>& times() const { return times_; }
  const std::vector<std::vector<double>>& waited() const { return waited_; }

 private:
  // Counts the idle part of a wait and returns the rest.
  double idle(int rank, const RecordedTask& task, double until, int culprit) {
    const double seconds = std::clamp(until - task.begin, 0.0, task.seconds());
    if (culprit != rank && culprit >= 0) {
      idle_[static_cast<size_t>(rank)] += seconds;
      waited_[static_cast<size_t>(rank)][static_cast<size_t>(culprit)] += seconds;
      return task.seconds() - seconds;
    }
    return task.seconds();
  }

  double after_last(int rank, const RecordedTask& task) {
    const Last& last = last_.at({task.task.kind, task.task.stage});
    return idle(rank, task, last.begin, last.rank);
  }

  double after_send(int rank, const RecordedTask& task) {
    const auto found =
        sent_.find({task.peer, rank, task.task.peer, task.task.stage, task.task.micro_batch});
    return found == sent_.end() ? task.seconds() : idle(rank, task, found->second, task.peer);
  }

  StepTimes divide(int number) {
    const RecordedStep::Rank& rank = step_.ranks[static_cast<size_t>(number)];
    StepTimes times{.seconds = rank.end - rank.begin};
    double updates = 0;
    for (const RecordedTask& task : rank.tasks) {
      switch (task.task.kind) {
        case TaskKind::forward:
        case TaskKind::backward:
        case TaskKind::backward_input:
        case TaskKind::backward_weight:
          times[Category::compute] += task.seconds();
          break;
        case TaskKind::load:
          times[Category::data] += task.seconds();
          break;
        case TaskKind::send:
        case TaskKind::expect:
        case TaskKind::begin_reduce:
          times[Category::communication] += task.seconds();
          break;
        case TaskKind::receive:
          times[Category::communication] += after_send(number, task);
          break;
        case TaskKind::reduce:
        case TaskKind::norm:
        case TaskKind::loss:
          times[Category::communication] += after_last(number, task);
          break;
        case TaskKind::update:
          updates += task.seconds();
          times[Category::update] += after_last(number, task);
          break;
      }
    }
    // An update that did not fit behind backward lies within the reduction.
    const double inside = std::clamp(rank.sums.times[Category::update] - updates, 0.0,
                                     times[Category::communication]);
    times[Category::communication] -= inside;
    times[Category::update] += inside;
    times[Category::checkpoint] = rank.sums.times[Category::checkpoint];
    double accounted = idle_[static_cast<size_t>(number)];
    for (const double part : times.by_category) accounted += part;
    times[Category::other] += times.seconds - accounted;
    return times;
  }

  std::vector<double> idle_in(const ReplayTimes& times) const {
    const auto evaluation = replay(step_, times, schedule::Record::all);
    std::vector<double> idle;
    for (const auto& events : evaluation.events) {
      double seconds = 0;
      for (const schedule::Event& event : events)
        if (event.task.kind == TaskKind::receive || event.task.kind == TaskKind::reduce ||
            event.task.kind == TaskKind::norm || event.task.kind == TaskKind::loss)
          seconds += event.end - event.begin;
      idle.push_back(seconds);
    }
    return idle;
  }

  void divide_idle() {
    ReplayTimes times = times_of(step_);
    without_communication(times);
    std::vector<std::vector<double>> left{idle_in(times)};
    all_begin_together(times);
    left.push_back(idle_in(times));
    without_loading(times);
    left.push_back(idle_in(times));
    equal_ranks(step_, times);
    left.push_back(idle_in(times));
    if (step_.stages > 1) balanced_stages(step_, times);
    left.push_back(idle_in(times));
    constexpr std::array kCauses{Category::wait, Category::data, Category::wait,
                                 Category::imbalance};
    for (size_t r = 0; r < idle_.size(); ++r) {
      const double all = left[0][r];
      double rest = idle_[r];
      // A replay without idle time can't say why: some rank was late by what no task shows.
      if (all <= 0) {
        times_[r][Category::wait] += rest;
        continue;
      }
      double before = all;
      for (size_t cause = 0; cause < kCauses.size(); ++cause) {
        const double after = std::min(before, left[cause + 1][r]);
        const double part = idle_[r] * (before - after) / all;
        times_[r][kCauses[cause]] += part;
        rest -= part;
        before = after;
      }
      times_[r][step_.stages > 1 ? Category::bubble : Category::wait] += std::max(0.0, rest);
    }
  }

  const RecordedStep& step_;
  std::map<std::pair<TaskKind, int>, Last> last_;
  std::map<ReplayTimes::Transfer, double> sent_;
  std::vector<double> idle_;
  std::vector<std::vector<double>> waited_;
  std::vector<StepTimes> times_;
};

}  // namespace

Attribution attribute(const std::vector<RecordedStep>& steps, size_t warm_up) {
  Attribution result;
  if (steps.empty()) return result;
  const size_t ranks = steps[0].ranks.size();
  result.ranks.resize(ranks);
  result.hidden_communication.resize(ranks);
  result.waited_for.assign(ranks, std::vector<double>(ranks));
  // Of steps that were dropped the warm-up was the first.
  size_t skip = 0;
  while (skip < steps.size() && steps[skip].step < static_cast<int64_t>(warm_up)) ++skip;
  if (skip == steps.size()) skip = 0;
  const double share = 1 / static_cast<double>(steps.size() - skip);
  const auto add_share = [&](StepTimes& sum, const StepTimes& times, double factor) {
    sum.seconds += factor * times.seconds;
    for (size_t c = 0; c < times.by_category.size(); ++c)
      sum.by_category[c] += factor * times.by_category[c];
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const StepDivision division(steps[s]);
    result.steps.push_back(
        {.step = steps[s].step, .begin = steps[s].begin(), .ranks = division.times()});
    if (s < skip) continue;
    result.step_seconds += share * steps[s].seconds();
    for (size_t r = 0; r < ranks; ++r) {
      add_share(result.ranks[r], division.times()[r], share);
      add_share(result.all, division.times()[r], share / static_cast<double>(ranks));
      result.hidden_communication[r] += share * steps[s].ranks[r].sums.hidden_communication;
      for (size_t other = 0; other < ranks; ++other)
        result.waited_for[r][other] += share * division.waited()[r][other];
    }
  }
  return result;
}

}  // namespace renkei::report
