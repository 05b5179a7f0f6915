#include "report/replay.h"

#include <algorithm>
#include <cmath>

namespace renkei::report {
namespace {

using schedule::Task;
using schedule::TaskKind;
using Key = ReplayTimes::Key;

constexpr double kNotAtOnce = 50e-6;  // a receive of what is there takes less

bool waits(TaskKind kind) {
  return kind == TaskKind::receive || kind == TaskKind::reduce || kind == TaskKind::norm ||
         kind == TaskKind::loss;
}

bool only_begins(TaskKind kind) {
  return kind == TaskKind::send || kind == TaskKind::expect || kind == TaskKind::begin_reduce;
}

Key key_of(int rank, const Task& task) {
  return {rank, task.kind, task.stage, task.micro_batch};
}

// When the last rank came to a task that several do together.
std::map<std::pair<TaskKind, int>, double> last_arrivals(const RecordedStep& step) {
  std::map<std::pair<TaskKind, int>, double> last;
  for (const auto& rank : step.ranks)
    for (const RecordedTask& task : rank.tasks) {
      const auto [found, is_new] = last.try_emplace({task.task.kind, task.task.stage}, task.begin);
      if (!is_new) found->second = std::max(found->second, task.begin);
    }
  return last;
}

void add_transfers(const RecordedStep& step, ReplayTimes& times) {
  std::map<ReplayTimes::Transfer, double> sent;
  for (size_t r = 0; r < step.ranks.size(); ++r)
    for (const RecordedTask& task : step.ranks[r].tasks)
      if (task.task.kind == TaskKind::send)
        sent[{static_cast<int>(r), task.peer, task.task.stage, task.task.peer,
              task.task.micro_batch}] = task.begin;
  std::map<std::pair<int, int>, std::vector<double>> between;
  std::vector<ReplayTimes::Transfer> hidden;
  for (size_t r = 0; r < step.ranks.size(); ++r) {
    double expected = 0;
    for (const RecordedTask& task : step.ranks[r].tasks) {
      if (task.task.kind == TaskKind::expect) expected = task.begin;
      if (task.task.kind != TaskKind::receive) continue;
      const ReplayTimes::Transfer message{task.peer, static_cast<int>(r), task.task.peer,
                                          task.task.stage, task.task.micro_batch};
      const auto found = sent.find(message);
      if (found == sent.end()) continue;
      const double ready = std::max(found->second, expected);
      // One that was there when it was asked for took no longer than until then, and maybe less.
      const bool waited = task.begin <= ready || task.seconds() > kNotAtOnce;
      if (waited && task.begin <= ready)
        between[{task.peer, static_cast<int>(r)}].push_back(std::max(0.0, task.end - ready));
      times.transfers[message] = std::max(0.0, (waited ? task.end : task.begin) - ready);
      if (!waited) hidden.push_back(message);
    }
  }
  for (auto& [pair, list] : between) {
    std::ranges::nth_element(list, list.begin() + static_cast<ptrdiff_t>(list.size() / 2));
    times.usual_transfer[pair] = list[list.size() / 2];
  }
  for (const ReplayTimes::Transfer& message : hidden) {
    const auto usual = times.usual_transfer.find({std::get<0>(message), std::get<1>(message)});
    double& most = times.transfers[message];
    most = std::min(most, usual == times.usual_transfer.end() ? 0 : usual->second);
  }
}

// What remains when the last replica has come is one bucket's share of the reduction.
schedule::RankedStep::Reduction reduction_of(const RecordedStep& step, int set, double last) {
  double end = last, reduced = 0;
  for (const int r : step.ranks_of[static_cast<size_t>(set)]) {
    const auto& rank = step.ranks[static_cast<size_t>(r)];
    double least = rank.end;
    for (const RecordedTask& task : rank.tasks)
      if (task.task.kind == TaskKind::reduce && task.task.stage == set)
        least = std::min(least, task.end);
    end = std::max(end, least);
    reduced = reduced == 0 ? rank.reduced_seconds : std::min(reduced, rank.reduced_seconds);
  }
  const double left = end - last;
  if (left <= 0) return {};
  const double buckets = std::clamp(std::round(reduced / left), 1.0, 64.0);
  return {.seconds = left * buckets, .buckets = static_cast<int>(buckets)};
}

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Of a task of a stage, over its replicas.
double median_of_replicas(const RecordedStep& step, const ReplayTimes& times, const Key& key) {
  std::vector<double> all;
  const auto stage = static_cast<size_t>(std::get<2>(key));
  for (const int rank : step.ranks_of[stage]) {
    Key other = key;
    std::get<0>(other) = rank;
    if (const auto found = times.seconds.find(other); found != times.seconds.end())
      all.push_back(found->second);
  }
  return lower_median(std::move(all));
}

}  // namespace

ReplayTimes times_of(const RecordedStep& step) {
  ReplayTimes times;
  const auto last = last_arrivals(step);
  for (size_t r = 0; r < step.ranks.size(); ++r) {
    double cursor = step.ranks[r].begin;
    times.late.push_back(cursor - step.begin());
    for (const RecordedTask& task : step.ranks[r].tasks) {
      const TaskKind kind = task.task.kind;
      if (only_begins(kind)) continue;
      const Key key = key_of(static_cast<int>(r), task.task);
      if (kind == TaskKind::norm || kind == TaskKind::loss)
        times.seconds[key] = std::max(0.0, task.end - last.at({kind, task.task.stage}));
      else if (kind == TaskKind::update)  // replicas wait for each other in it
        times.seconds[key] =
            std::max(0.0, task.end - std::max(cursor, last.at({kind, task.task.stage})));
      else if (!waits(kind))
        times.seconds[key] = std::max(0.0, task.end - cursor);
      cursor = task.end;
    }
  }
  add_transfers(step, times);
  for (size_t set = 0; set < step.ranks_of.size(); ++set) {
    const auto found = last.find({TaskKind::reduce, static_cast<int>(set)});
    times.reductions.push_back(found == last.end()
                                   ? schedule::RankedStep::Reduction{}
                                   : reduction_of(step, static_cast<int>(set), found->second));
  }
  return times;
}

schedule::Evaluation replay(const RecordedStep& step, const ReplayTimes& times,
                            schedule::Record record) {
  schedule::RankedStep ranked{.lists = {},
                              .ranks_of = step.ranks_of,
                              .stages = step.stages,
                              .micro_batches = step.micro_batches,
                              .reductions = times.reductions,
                              .seconds = {},
                              .transfer = {}};
  for (const auto& rank : step.ranks) {
    schedule::TaskList list;
    for (const RecordedTask& task : rank.tasks) list.push_back(task.task);
    ranked.lists.push_back(std::move(list));
  }
  // Who begins late takes longer for its first task.
  std::vector<Task> first;
  for (const schedule::TaskList& list : ranked.lists)
    first.push_back(*std::ranges::find_if(
        list, [](const Task& task) { return !only_begins(task.kind) && !waits(task.kind); }));
  ranked.seconds = [&](int rank, const Task& task) {
    const auto found = times.seconds.find(key_of(rank, task));
    const auto r = static_cast<size_t>(rank);
    return (found == times.seconds.end() ? 0 : found->second) +
           (task == first[r] ? times.late[r] : 0);
  };
  ranked.transfer = [&](int from, int to, const Task& send) {
    const auto found = times.transfers.find({from, to, send.stage, send.peer, send.micro_batch});
    if (found != times.transfers.end()) return found->second;
    const auto usual = times.usual_transfer.find({from, to});
    return usual == times.usual_transfer.end() ? 0 : usual->second;
  };
  return evaluate(ranked, record);
}

void all_begin_together(ReplayTimes& times) {
  times.late.assign(times.late.size(), 0);
}

void without_loading(ReplayTimes& times) {
  for (auto& [key, seconds] : times.seconds)
    if (std::get<1>(key) == TaskKind::load) seconds = 0;
}

namespace {

void scale_communication(ReplayTimes& times, double factor) {
  for (auto& [message, seconds] : times.transfers) seconds *= factor;
  for (auto& [pair, seconds] : times.usual_transfer) seconds *= factor;
  for (auto& reduction : times.reductions) reduction.seconds *= factor;
}

}  // namespace

void without_communication(ReplayTimes& times) {
  scale_communication(times, 0);
  for (auto& [key, seconds] : times.seconds)
    if (waits(std::get<1>(key))) seconds = 0;
}

void half_the_bytes(ReplayTimes& times) {
  scale_communication(times, 0.5);
}

void equal_ranks(const RecordedStep& step, ReplayTimes& times) {
  const ReplayTimes before = times;
  for (auto& [key, seconds] : times.seconds)
    if (is_compute(std::get<1>(key)) || std::get<1>(key) == TaskKind::load)
      seconds = median_of_replicas(step, before, key);
}

void rank_as_its_median(const RecordedStep& step, int rank, ReplayTimes& times) {
  const ReplayTimes before = times;
  for (auto& [key, seconds] : times.seconds)
    if (std::get<0>(key) == rank && is_compute(std::get<1>(key)))
      seconds = std::min(seconds, median_of_replicas(step, before, key));
}

void balanced_stages(const RecordedStep& step, ReplayTimes& times) {
  std::vector<double> compute(step.ranks.size());
  for (const auto& [key, seconds] : times.seconds)
    if (is_compute(std::get<1>(key))) compute[static_cast<size_t>(std::get<0>(key))] += seconds;
  double mean = 0;
  for (const double seconds : compute) mean += seconds / static_cast<double>(compute.size());
  for (auto& [key, seconds] : times.seconds) {
    const double own = compute[static_cast<size_t>(std::get<0>(key))];
    if (is_compute(std::get<1>(key)) && own > 0) seconds *= mean / own;
  }
}

}  // namespace renkei::report
