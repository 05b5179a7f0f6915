#include "plan/step_model.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace renkei::plan {
namespace {

constexpr std::array kAll{ScheduleKind::accumulate, ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                          ScheduleKind::interleaved, ScheduleKind::zero_bubble};

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::accumulate:
      return "accumulate";
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::interleaved:
      return "interleaved";
    case ScheduleKind::zero_bubble:
      return "zero_bubble";
  }
  return "";
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const ScheduleKind kind : kAll) names.push_back(name_of(kind));
  return names;
}

ScheduleKind parse_schedule(std::string_view name) {
  for (const ScheduleKind kind : kAll)
    if (name == name_of(kind)) return kind;
  throw Error(ErrorCode::usage, fmt::format("there is no schedule '{}'", name),
              fmt::format("the schedules are: {}", fmt::join(schedule_names(), ", ")));
}

}  // namespace renkei::plan
