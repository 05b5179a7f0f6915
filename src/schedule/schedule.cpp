#include "schedule/schedule.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/accumulate.h"
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
    case TaskKind::receive:
      return "receive";
    case TaskKind::reduce:
      return "reduce";
    case TaskKind::update:
      return "update";
  }
  return "";
}

Schedule make_schedule(const Shape& shape, const std::vector<bool>& loads) {
  check(shape);
  return with_transfers(compute_order(shape), shape, loads);
}

Schedule make_schedule(const Shape& shape) {
  std::vector<bool> loads(static_cast<size_t>(std::max(1, shape.stages)));
  loads.front() = loads.back() = true;
  return make_schedule(shape, loads);
}

TaskList make_schedule(const plan::Plan& plan, int rank) {
  const Shape shape = plan.shape();
  if (plan.stage_list.empty() && shape.kind == ScheduleKind::accumulate)
    return accumulate(shape.micro_batches);
  std::vector<bool> loads;
  std::optional<int> group;
  for (size_t stage = 0; stage < plan.stage_list.size(); ++stage) {
    loads.push_back(plan.stage_list[stage].loads);
    if (std::ranges::count(plan.stage_list[stage].ranks, rank) > 0)
      group = shape.group_of(static_cast<int>(stage));
  }
  if (!group)
    throw Error(ErrorCode::usage, fmt::format("the plan has no stage for rank {}", rank),
                fmt::format("start it on {} ranks", plan.ranks()));
  return make_schedule(shape, loads)[static_cast<size_t>(*group)];
}

}  // namespace renkei::schedule
