// Whatever the schedule, stage s does all its work after the first micro-batch has come through the
// stages before it, and (unless weights come last) the last gradient still has to go back through
// them. With f forward, b backward, x transfer:
//
//   step >= sum over i < s of (f_i + x_i)  +  m (f_s + b_s)  +  sum over i < s of (b_i + x'_i)
#include <algorithm>

#include "plan/search.h"

namespace renkei::plan {

double lower_bound(const Shape& shape, std::span<const StageTimes> stages) {
  if (shape.chunks > 1) {
    std::vector<double> work(static_cast<size_t>(shape.groups()));
    for (int stage = 0; stage < shape.stages; ++stage)
      work[static_cast<size_t>(shape.group_of(stage))] +=
          shape.micro_batches * stages[static_cast<size_t>(stage)].compute();
    return *std::ranges::max_element(work);
  }
  const bool split = shape.kind == ScheduleKind::zero_bubble;
  double bound = 0, down = 0, up = 0;
  for (const StageTimes& stage : stages) {
    const double work = shape.micro_batches * stage.compute();
    const double without_weights =
        shape.micro_batches * (stage.forward + stage.backward_input) + up;
    bound = std::max(bound, down + (split ? std::max(work, without_weights) : work + up));
    bound = std::max(bound, down + work + stage.update);
    down += stage.forward + stage.send_forward;
    up += (split ? stage.backward_input : stage.backward()) + stage.send_backward;
  }
  return bound;
}

}  // namespace renkei::plan
