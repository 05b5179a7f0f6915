#include "report/recorded_step.h"

#include <algorithm>
#include <map>
#include <optional>

namespace renkei::report {
namespace {

using schedule::TaskKind;
using timeline::Event;
using timeline::RankTimeline;

std::optional<TaskKind> kind_of(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(TaskKind::loss); ++kind)
    if (name == name_of(static_cast<TaskKind>(kind))) return static_cast<TaskKind>(kind);
  return {};
}

RecordedStep::Rank rank_of(const timeline::StepRecord& sums, std::span<const Event* const> events) {
  RecordedStep::Rank rank{.begin = sums.begin, .end = sums.end(), .sums = sums};
  for (const Event* event : events) {
    if (event->lane == timeline::kCommunicationLane) rank.reduced_seconds += event->seconds();
    if (event->lane != timeline::kComputeLane) continue;
    const auto kind = kind_of(event->name);
    if (!kind) continue;
    rank.tasks.push_back({.task = {*kind, event->index, event->stage, event->peer_stage},
                          .begin = event->begin,
                          .end = event->end,
                          .peer = event->peer,
                          .bytes = event->bytes});
  }
  // An expect does not tell its peer's stage; the receive that follows does.
  int peer_stage = -1;
  for (auto task = rank.tasks.rbegin(); task != rank.tasks.rend(); ++task) {
    if (task->task.kind == TaskKind::receive) peer_stage = task->task.peer;
    if (task->task.kind == TaskKind::expect) task->task.peer = peer_stage;
  }
  return rank;
}

void find_stages(RecordedStep& step) {
  std::map<int, std::vector<int>> ranks_of;
  int stages = 0, micro_batches = 0;
  for (size_t r = 0; r < step.ranks.size(); ++r)
    for (const RecordedTask& task : step.ranks[r].tasks) {
      // The loss is everybody's, and belongs to no stage.
      if (!is_compute(task.task.kind) && task.task.kind != TaskKind::reduce) continue;
      auto& ranks = ranks_of[task.task.stage];
      if (ranks.empty() || ranks.back() != static_cast<int>(r))
        ranks.push_back(static_cast<int>(r));
      if (!is_compute(task.task.kind)) continue;
      stages = std::max(stages, task.task.stage + 1);
      micro_batches = std::max(micro_batches, task.task.micro_batch + 1);
    }
  step.stages = std::max(1, stages);
  step.micro_batches = std::max(1, micro_batches);
  for (auto& [stage, ranks] : ranks_of) {
    if (stage < 0) continue;
    step.ranks_of.resize(std::max(step.ranks_of.size(), static_cast<size_t>(stage) + 1));
    step.ranks_of[static_cast<size_t>(stage)] = std::move(ranks);
  }
}

}  // namespace

double RecordedStep::begin() const {
  return std::ranges::min(ranks, {}, &Rank::begin).begin;
}

double RecordedStep::seconds() const {
  return std::ranges::max(ranks, {}, &Rank::end).end - begin();
}

std::vector<RecordedStep> recorded_steps(std::span<const RankTimeline> ranks, size_t most) {
  std::map<int64_t, RecordedStep> steps;
  for (const RankTimeline& rank : ranks) {
    std::map<int64_t, std::vector<const Event*>> events;
    for (const Event& event : rank.events)
      if (event.step >= 0) events[event.step].push_back(&event);
    if (rank.dropped_events > 0 && !events.empty()) events.erase(events.begin());  // part of it
    const size_t skip = rank.steps.size() - std::min(most, rank.steps.size());
    for (const timeline::StepRecord& sums : std::span(rank.steps).subspan(skip)) {
      const auto found = events.find(sums.step);
      if (found == events.end()) continue;
      RecordedStep& step = steps[sums.step];
      step.step = sums.step;
      step.ranks.push_back(rank_of(sums, found->second));
    }
  }
  std::vector<RecordedStep> complete;
  for (auto& [number, step] : steps) {
    if (step.ranks.size() != ranks.size() ||
        std::ranges::any_of(step.ranks, [](const auto& rank) { return rank.tasks.empty(); }))
      continue;
    find_stages(step);
    complete.push_back(std::move(step));
  }
  return complete;
}

}  // namespace renkei::report
