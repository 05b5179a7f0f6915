#include "schedule/schedule.h"

#include "base/error.h"
#include "schedule/accumulate.h"

namespace renkei::schedule {

std::string_view name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::load:
      return "load";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::reduce:
      return "reduce";
    case TaskKind::update:
      return "update";
  }
  return "";
}

std::vector<Task> make_schedule(const plan::Plan& plan, [[maybe_unused]] int rank) {
  if (plan.schedule == "accumulate") return accumulate(static_cast<int>(plan.batch.accumulation));
  throw Error(ErrorCode::usage, fmt::format("there is no schedule '{}'", plan.schedule),
              "the schedules are: accumulate");
}

}  // namespace renkei::schedule
