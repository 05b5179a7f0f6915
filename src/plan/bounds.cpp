// Whatever the schedule, stage s does all its work after the first micro-batch has come through the
// stages before it, and (unless weights come last) the last gradient still has to go back through
// them. With f forward, b backward, x transfer:
//
//   step >= sum over i < s of (f_i + x_i)  +  m (f_s + b_s)  +  sum over i < s of (b_i + x'_i)
//
// GPipe turns when all forwards are over. Until then one goes through all stages and the others
// through the slowest, and the same after it, whichever stages are slowest there and here:
//
//   step >= sum of (f_i + x_i)  +  (m - 1) max f_i  +  sum of (b_i + x'_i)  +  (m - 1) max b_i
//
// An estimate follows the same rules; it tells which of similar layouts is worth an evaluation.
#include <algorithm>

#include "plan/search.h"

namespace renkei::plan {
namespace {

double gpipe_bound(const Shape& shape, std::span<const StageTimes> stages) {
  double way = 0, slowest_down = 0, slowest_up = 0;
  for (const StageTimes& stage : stages) {
    way += stage.compute() + stage.send_forward + stage.send_backward;
    slowest_down = std::max({slowest_down, stage.forward, stage.send_forward});
    slowest_up = std::max({slowest_up, stage.backward(), stage.send_backward});
  }
  return way + (shape.micro_batches - 1) * (slowest_down + slowest_up);
}

}  // namespace

double lower_bound(const Shape& shape, std::span<const StageTimes> stages) {
  if (shape.chunks > 1) {  // the first stage of a group waits, and is waited for, as without chunks
    std::vector<double> busy(static_cast<size_t>(shape.groups()));
    double way = 0;
    for (int stage = 0; stage < shape.stages; ++stage) {
      const StageTimes& times = stages[static_cast<size_t>(stage)];
      if (stage < shape.groups()) {
        busy[static_cast<size_t>(stage)] = way;
        way += times.compute() + times.send_forward + times.send_backward;
      }
      busy[static_cast<size_t>(shape.group_of(stage))] += shape.micro_batches * times.compute();
    }
    return *std::ranges::max_element(busy);
  }
  const bool split = shape.kind == ScheduleKind::zero_bubble;
  double bound = shape.kind == ScheduleKind::gpipe ? gpipe_bound(shape, stages) : 0;
  double down = 0, up = 0;
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

double estimate(const Shape& shape, std::span<const StageTimes> stages) {
  double way = 0, tail = 0;
  std::vector<double> work(static_cast<size_t>(shape.groups()));
  for (int stage = 0; stage < shape.stages; ++stage) {
    const StageTimes& times = stages[static_cast<size_t>(stage)];
    way += times.compute() + times.send_forward + times.send_backward;
    if (shape.kind == ScheduleKind::zero_bubble) way -= times.backward_weight;
    work[static_cast<size_t>(shape.group_of(stage))] += times.compute();
    tail = std::max(tail, times.reduce / times.buckets + times.update);
  }
  if (shape.kind == ScheduleKind::gpipe) return gpipe_bound(shape, stages) + tail;
  return way / shape.chunks + (shape.micro_batches - 1) * *std::ranges::max_element(work) + tail;
}

// With D devices, S stages and work w of a micro-batch on one device, stage s takes c_s with
// r_s c_s >= w_s. A step of length T leaves it c_s <= (T - sum over i < s of c_i) / m, so all work
// needs
//
//   w <= T / m (D - S + 1  +  sum over 0 < s < S of (1 - 1/m)^s)
//
// when the devices beyond one for each stage are with the first, which waits the least.
double least_seconds(const Shape& shape, int devices, double work) {
  const double m = shape.micro_batches;
  if (shape.kind == ScheduleKind::zero_bubble || shape.chunks > 1) return m * work / devices;
  double shares = devices - shape.stages + 1, share = 1;
  for (int stage = 1; stage < shape.stages; ++stage) shares += share *= 1 - 1 / m;
  return m * work / shares;
}

}  // namespace renkei::plan
