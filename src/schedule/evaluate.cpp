#include "schedule/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/walk.h"

namespace renkei::schedule {
namespace {

using plan::Shape;
using plan::StageTimes;

constexpr double kNever = -1;
// So many schedules are kept; a search comes back to the same few shapes.
constexpr size_t kMostKept = 64;

class VirtualStep {
 public:
  VirtualStep(const Shape& shape, std::span<const StageTimes> times, Record record)
      : shape_(shape),
        times_(times),
        record_(record),
        now_(static_cast<size_t>(shape.groups())),
        network_free_(now_.size()),
        busy_(now_.size()),
        events_(now_.size()),
        link_free_(2 * times.size()),
        reduced_(times.size()),
        arrival_(2 * times.size() * static_cast<size_t>(shape.micro_batches), kNever) {}

  bool ready(const Task& task) const {
    return task.kind != TaskKind::receive || arrival_[message(task.stage, task)] != kNever;
  }

  void visit(size_t group, const Task& task) {
    const StageTimes& times = times_[static_cast<size_t>(task.stage)];
    double& now = now_[group];
    const double begin = now;
    switch (task.kind) {
      case TaskKind::load:
        return;
      case TaskKind::forward:
        return compute(group, task, times.forward);
      case TaskKind::backward:
        return compute(group, task, times.backward());
      case TaskKind::backward_input:
        return compute(group, task, times.backward_input);
      case TaskKind::backward_weight:
        return compute(group, task, times.backward_weight);
      case TaskKind::send:
        return send(group, task);
      case TaskKind::receive:
        now = std::max(now, arrival_[message(task.stage, task)]);
        return;
      case TaskKind::reduce:
        now = std::max(now, reduced_[static_cast<size_t>(task.stage)]);
        break;
      case TaskKind::update:
        now += times.update + times.gather;
        break;
    }
    if (record_ == Record::events) events_[group].push_back({task, begin, now});
  }

  Evaluation result() && {
    return {.seconds = *std::ranges::max_element(now_),
            .busy_seconds = std::move(busy_),
            .events = std::move(events_)};
  }

 private:
  // Of what arrives at `stage`: outputs of the one before, or gradients from the one after.
  size_t message(int stage, const Task& task) const {
    const int other = task.kind == TaskKind::send ? task.stage : task.peer;
    const size_t direction = other > stage ? 1 : 0;
    return (static_cast<size_t>(stage) * 2 + direction) *
               static_cast<size_t>(shape_.micro_batches) +
           static_cast<size_t>(task.micro_batch);
  }

  void compute(size_t group, const Task& task, double seconds) {
    const double begin = now_[group];
    now_[group] += seconds;
    busy_[group] += seconds;
    if (record_ == Record::events) events_[group].push_back({task, begin, now_[group]});
    const bool last = task.micro_batch == shape_.micro_batches - 1;
    if (last && (task.kind == TaskKind::backward || task.kind == TaskKind::backward_weight))
      begin_reduction(group, task.stage, begin);
  }

  void begin_reduction(size_t group, int stage, double backward_begin) {
    const StageTimes& times = times_[static_cast<size_t>(stage)];
    const double backward_end = now_[group];
    const double first_ready =
        backward_begin + (backward_end - backward_begin) / std::max(1, times.buckets);
    const double in_turn = std::max(network_free_[group], first_ready) + times.reduce;
    const double last_bucket = backward_end + times.reduce / std::max(1, times.buckets);
    network_free_[group] = reduced_[static_cast<size_t>(stage)] = std::max(in_turn, last_bucket);
  }

  // `send_backward` belongs to the stage that the gradient flows to.
  void send(size_t group, const Task& task) {
    const bool down = task.peer > task.stage;
    const auto upper = static_cast<size_t>(std::min(task.stage, task.peer));
    const double seconds = down ? times_[upper].send_forward : times_[upper].send_backward;
    double& free = link_free_[2 * upper + (down ? 0 : 1)];
    free = std::max(free, now_[group]) + seconds;
    arrival_[message(task.peer, task)] = free;
  }

  const Shape& shape_;
  std::span<const StageTimes> times_;
  Record record_;
  std::vector<double> now_, network_free_, busy_;  // by group
  std::vector<std::vector<Event>> events_;
  std::vector<double> link_free_;  // below each stage, downwards and upwards
  std::vector<double> reduced_;    // by stage
  std::vector<double> arrival_;
};

}  // namespace

double Evaluation::bubble() const {
  if (seconds <= 0) return 0;
  double busy = 0;
  for (const double of_group : busy_seconds) busy += of_group;
  return 1 - busy / (seconds * static_cast<double>(busy_seconds.size()));
}

Evaluation evaluate(const Schedule& schedule, const Shape& shape,
                    std::span<const StageTimes> stages, Record record) {
  VirtualStep step(shape, stages, record);
  const auto stopped = walk(
      schedule, [&](const Task& task) { return step.ready(task); },
      [&](size_t group, const Task& task) { step.visit(group, task); });
  for (size_t group = 0; group < schedule.size(); ++group)
    if (stopped[group] < schedule[group].size())
      throw Error(ErrorCode::bug, fmt::format("group {} of a {} schedule waits for ever", group,
                                              name_of(shape.kind)));
  return std::move(step).result();
}

std::vector<plan::InFlight> in_flight(const Schedule& schedule, const Shape& shape) {
  std::vector<plan::InFlight> now(static_cast<size_t>(shape.stages)), most(now.size());
  for (const TaskList& tasks : schedule)
    for (const Task& task : tasks) {
      const auto stage = static_cast<size_t>(task.stage);
      plan::InFlight& here = now[stage];
      if (task.kind == TaskKind::forward) {
        most[stage].all = std::max(most[stage].all, ++here.all);
        most[stage].whole = std::max(most[stage].whole, ++here.whole);
      }
      if (task.kind == TaskKind::backward || task.kind == TaskKind::backward_input) --here.whole;
      if (task.kind == TaskKind::backward || task.kind == TaskKind::backward_weight) --here.all;
    }
  return most;
}

const Schedule& ScheduledSteps::schedule_of(const Shape& shape) const {
  auto found = schedules_.find(shape);
  if (found != schedules_.end()) return found->second;
  if (schedules_.size() >= kMostKept) schedules_.clear();
  return schedules_.emplace(shape, make_schedule(shape)).first->second;
}

double ScheduledSteps::step_seconds(const Shape& shape, std::span<const StageTimes> stages) const {
  return evaluate(schedule_of(shape), shape, stages).seconds;
}

std::vector<plan::InFlight> ScheduledSteps::in_flight(const Shape& shape) const {
  const auto found = in_flight_.find(shape);
  if (found != in_flight_.end()) return found->second;
  return in_flight_.emplace(shape, schedule::in_flight(schedule_of(shape), shape)).first->second;
}

}  // namespace renkei::schedule
