// What happened when, on this rank. The executor of a schedule reports every task; the recorder
// keeps, for each step, the seconds of each category, and what no task accounts for is "other", so
// that the categories always add up to the step. With a file, slices and sums go there as well.
#pragma once

#include <vector>

#include "timeline/event.h"

namespace renkei::timeline {

class RankFile;

class Recorder {
 public:
  explicit Recorder(RankFile* file = nullptr) : file_(file) {}

  void begin_step(double now, int64_t step = 0, int64_t samples = 0);
  // A task begins: where a job that hangs was last.
  void enter(const Event& event);
  // Counts the event's seconds to its category, and keeps it if there is a file.
  void add(const Event& event);
  // Only keeps it: its seconds are hidden behind other work, or not part of a step.
  void note(const Event& event);
  void add(Category category, double seconds) { current_.times[category] += seconds; }
  void add_hidden_communication(double seconds) { current_.hidden_communication += seconds; }
  void set_memory(int64_t bytes) { memory_bytes_ = bytes; }
  void end_step(double now);

  const std::vector<StepTimes>& steps() const { return steps_; }

 private:
  RankFile* file_;
  StepRecord current_;
  int64_t memory_bytes_ = 0;
  std::vector<StepTimes> steps_;
};

// Part of what a rank spends in a collective is waiting for the last rank to arrive. The rank that
// spends the least time in it came last and did not wait, so `least[s]`, the smallest
// communication time of any rank in step s, splits the time of the others. Where there are slices,
// report/attribution.h tells more.
void split_waiting(std::vector<StepTimes>& steps, const std::vector<double>& least);

// Mean over the steps, leaving out the first `skip` (warm-up) ones where there are more.
StepTimes mean_of(const std::vector<StepTimes>& steps, size_t skip);

// The q-quantile (0 to 1) by linear interpolation; 0 for no values.
double quantile(std::vector<double> values, double q);

}  // namespace renkei::timeline
