// What the planner must know about schedules without knowing any of them: how long a step takes and
// how many micro-batches are in flight, given the times of the stages. `schedule` implements it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace renkei::plan {

enum class ScheduleKind { accumulate, gpipe, one_f_one_b, interleaved, zero_bubble };
std::string_view name_of(ScheduleKind kind);         // "1f1b"
ScheduleKind parse_schedule(std::string_view name);  // usage Error with all names
std::vector<std::string_view> schedule_names();

// The frame of a schedule. A group is the ranks that compute the same stages: stage s is computed
// by group s mod (stages / chunks), so that with chunks > 1 each group has several stages.
struct Shape {
  ScheduleKind kind = ScheduleKind::accumulate;
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;

  int groups() const { return stages / chunks; }
  int group_of(int stage) const { return stage % groups(); }
  // clang-tidy 14 takes the zero of a defaulted comparison for a pointer.
  auto operator<=>(const Shape&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Of one stage; for one micro-batch where that makes a difference.
struct StageTimes {
  double forward = 0;
  double backward_input = 0;   // the gradient of the stage's inputs, with recompute where it is on
  double backward_weight = 0;  // the gradient of its parameters
  double send_forward = 0;     // of what crosses to the next stage
  double send_backward = 0;    // of its gradient, back to this stage
  double reduce = 0;           // of the gradients over the replicas, once a step
  int buckets = 1;             // in which it is done, so that most of it hides behind backward
  double update = 0;           // once a step
  double gather = 0;           // of the updated parameters, when the optimizer is sharded

  double backward() const { return backward_input + backward_weight; }
  double compute() const { return forward + backward(); }
};

// Micro-batches that a stage has begun with and not ended: all, and those that are whole, before
// backward. The others only wait for gradients of parameters.
struct InFlight {
  int all = 0;
  int whole = 0;

  bool operator==(const InFlight&) const = default;
};

class StepModel {
 public:
  virtual ~StepModel() = default;
  // Grows (or stays) when any of the times grows.
  virtual double step_seconds(const Shape& shape, std::span<const StageTimes> stages) const = 0;
  // For each stage, the most at any time.
  virtual std::vector<InFlight> in_flight(const Shape& shape) const = 0;
};

}  // namespace renkei::plan
