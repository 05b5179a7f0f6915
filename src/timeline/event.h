// What is recorded of a rank: slices of time, and sums of each step. Plain data, so that what is
// measured (run) and what is predicted (sim) have the same form.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace renkei::timeline {

// Where a step's time goes. What no other explains is `other`: measured, never left out.
enum class Category : uint8_t {
  compute,
  communication,  // that nothing hides
  wait,           // for a slower rank
  imbalance,      // for a stage that has more to do
  bubble,         // for what a pipeline brings with it
  data,           // loading that nothing hides
  update,
  checkpoint,
  other
};
inline constexpr int kCategories = 9;
std::string_view name_of(Category category);

// A rank's threads of events: its own, which executes tasks, that of its reducer, those that read
// and write files; and the operations that tasks consist of, where they are recorded. Slices of one
// lane do not overlap, unless one lies within the other.
enum Lane : uint8_t { kComputeLane, kCommunicationLane, kInputOutputLane, kOperationLane };
inline constexpr int kLanes = 4;
std::string_view name_of_lane(int lane);

struct Event {
  std::string_view name;  // of static storage, or of the timeline that was read
  Category category = Category::other;
  double begin = 0, end = 0;  // seconds of the clock
  int64_t step = -1;          // -1: not part of a step
  int index = 0;              // of the micro-batch, the bucket …
  int lane = kComputeLane;
  int stage = -1;
  int peer = -1;        // the rank at the other end of a transfer
  int peer_stage = -1;  // and its stage
  int64_t bytes = 0;

  double seconds() const { return end - begin; }
};

// The seconds of one step, of this rank's thread, by category: they add up to `seconds`.
struct StepTimes {
  double seconds = 0;
  std::array<double, kCategories> by_category{};

  double& operator[](Category category) { return by_category[static_cast<size_t>(category)]; }
  double operator[](Category category) const { return by_category[static_cast<size_t>(category)]; }
  StepTimes& operator+=(const StepTimes& other);
};

// A step as it is kept, however many slices are dropped.
struct StepRecord {
  int64_t step = 0;
  double begin = 0;
  StepTimes times;                  // as this rank alone can tell: what it waits for, others know
  double hidden_communication = 0;  // seconds behind computing
  int64_t samples = 0;              // of all ranks
  int64_t memory_bytes = 0;         // of the process, the last that was asked for

  double end() const { return begin + times.seconds; }
};

}  // namespace renkei::timeline
