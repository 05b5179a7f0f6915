#include "schedule/schedule.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/generators.h"

namespace renkei::schedule {
namespace {

using plan::ScheduleKind;
using plan::Shape;

void check(const Shape& shape) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::usage, fmt::format("the schedule {} {}", name_of(shape.kind), why),
                hint);
  };
  if (shape.stages < 1 || shape.micro_batches < 1 || shape.chunks < 1 ||
      shape.stages % shape.chunks != 0)
    refuse(fmt::format("can't have {} stages in {} chunks and {} micro-batches", shape.stages,
                       shape.chunks, shape.micro_batches),
           "the stages must be a multiple of the chunks");
  if (shape.kind == ScheduleKind::accumulate && shape.stages > 1)
    refuse(fmt::format("has one stage, not {}", shape.stages), "choose 1f1b for several stages");
  if (shape.kind != ScheduleKind::interleaved && shape.chunks > 1)
    refuse("has one stage for each rank", "choose interleaved for several");
  if (shape.kind == ScheduleKind::interleaved &&
      (shape.groups() < 2 || shape.micro_batches % shape.groups() != 0))
    refuse(fmt::format("needs micro-batches in rounds of {} groups, not {}", shape.groups(),
                       shape.micro_batches),
           "choose a multiple of the groups, and at least 2 groups");
}

Schedule compute_order(const Shape& shape) {
  switch (shape.kind) {
    case ScheduleKind::gpipe:
      return gpipe(shape);
    case ScheduleKind::accumulate:  // the same with one stage
    case ScheduleKind::one_f_one_b:
      return one_f_one_b(shape);
    case ScheduleKind::interleaved:
      return interleaved(shape);
    case ScheduleKind::zero_bubble:
      return zero_bubble(shape);
  }
  throw Error(ErrorCode::bug, "a schedule of no kind");
}

int group_of_rank(const plan::Plan& plan, int rank) {
  if (plan.stage_list.empty() && rank < plan.ranks()) return 0;
  for (size_t stage = 0; stage < plan.stage_list.size(); ++stage)
    if (std::ranges::count(plan.stage_list[stage].ranks, rank) > 0)
      return plan.shape().group_of(static_cast<int>(stage));
  throw Error(ErrorCode::usage, fmt::format("the plan has no stage for rank {}", rank),
              fmt::format("start it on {} ranks", plan.ranks()));
}

}  // namespace

std::string_view name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::load:
      return "load";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::backward_input:
      return "backward_input";
    case TaskKind::backward_weight:
      return "backward_weight";
    case TaskKind::send:
      return "send";
    case TaskKind::expect:
      return "expect";
    case TaskKind::receive:
      return "receive";
    case TaskKind::begin_reduce:
      return "begin_reduce";
    case TaskKind::reduce:
      return "reduce";
    case TaskKind::norm:
      return "norm";
    case TaskKind::update:
      return "update";
    case TaskKind::loss:
      return "loss";
  }
  return "";
}

bool is_compute(TaskKind kind) {
  return kind == TaskKind::forward || kind == TaskKind::backward ||
         kind == TaskKind::backward_input || kind == TaskKind::backward_weight;
}

Schedule make_schedule(const Shape& shape, const StepParts& parts) {
  check(shape);
  if (!parts.loads.empty()) return with_transfers(compute_order(shape), shape, parts);
  StepParts usual = parts;
  usual.loads.resize(static_cast<size_t>(shape.stages));
  usual.loads.front() = usual.loads.back() = true;
  return with_transfers(compute_order(shape), shape, usual);
}

TaskList make_schedule(const plan::Plan& plan, int rank, StepParts parts) {
  parts.loads.clear();
  for (const plan::Stage& stage : plan.stage_list) parts.loads.push_back(stage.loads);
  return make_schedule(plan.shape(), parts)[static_cast<size_t>(group_of_rank(plan, rank))];
}

TaskList make_evaluation(const plan::Plan& plan, int rank, const std::vector<bool>& loads) {
  const Shape shape = plan.shape();
  Schedule forwards(static_cast<size_t>(shape.groups()));
  for (int stage = 0; stage < shape.stages; ++stage)
    forwards[static_cast<size_t>(shape.group_of(stage))].push_back({TaskKind::forward, 0, stage});
  return with_transfers(forwards, shape,
                        {.loads = loads})[static_cast<size_t>(group_of_rank(plan, rank))];
}

Halves make_halves(const plan::Plan& plan, int rank, StepParts parts) {
  Shape shape = plan.shape();
  if (shape.chunks > 1)
    throw Error(
        ErrorCode::usage,
        "the plan has several stages on a rank, and a program that computes the loss itself "
        "calls all forwards before the first backward",
        "plan with the schedule gpipe");
  shape.kind = ScheduleKind::gpipe;
  const Schedule order = gpipe(shape);
  const auto group = static_cast<size_t>(group_of_rank(plan, rank));
  const auto half = [&](TaskKind kind) {
    Schedule part = order;
    for (TaskList& tasks : part)
      std::erase_if(tasks, [&](const Task& task) { return task.kind != kind; });
    return with_transfers(part, shape, parts)[group];
  };
  return {.forward = half(TaskKind::forward), .backward = half(TaskKind::backward)};
}

}  // namespace renkei::schedule
