// What happened when, on this rank. The executor of a schedule reports every task; the recorder
// keeps, for each step, the seconds of each category, and what no task accounts for is "other", so
// that the categories always add up to the step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace renkei::timeline {

enum class Category { compute, communication, wait, bubble, data, update, checkpoint, other };
inline constexpr int kCategories = 8;
std::string_view name_of(Category category);

struct StepTimes {
  double seconds = 0;
  std::array<double, kCategories> by_category{};

  double& operator[](Category category) { return by_category[static_cast<size_t>(category)]; }
  double operator[](Category category) const { return by_category[static_cast<size_t>(category)]; }
};

// Something that happened, for a drawing. Lane 0 is the rank's main thread, lane 1 its reducer's.
struct Event {
  std::string_view name;  // of static storage
  Category category = Category::other;
  double begin = 0, end = 0;  // seconds of the clock
  int64_t step = 0;
  int index = 0;  // of the micro-batch, the bucket …
  int lane = 0;
};

class Recorder {
 public:
  explicit Recorder(bool keep_events = false) : keep_events_(keep_events) {}

  void begin_step(double now);
  // Counts the event's seconds to its category, and keeps it if events are kept.
  void add(const Event& event) {
    add(event.category, event.end - event.begin);
    note(event);
  }
  // Only keeps it: its seconds are hidden behind other work.
  void note(const Event& event) {
    if (keep_events_) events_.push_back(event);
  }
  void add(Category category, double seconds) { current_[category] += seconds; }
  void end_step(double now);

  const std::vector<Event>& events() const { return events_; }
  const std::vector<StepTimes>& steps() const { return steps_; }
  std::vector<StepTimes>& steps() { return steps_; }

 private:
  bool keep_events_;
  double begin_ = 0;
  StepTimes current_;
  std::vector<Event> events_;
  std::vector<StepTimes> steps_;
};

// Part of what a rank spends in a collective is waiting for the last rank to arrive. The rank that
// spends the least time in it came last and did not wait, so `least[s]`, the smallest
// communication time of any rank in step s, splits the time of the others.
void split_waiting(std::vector<StepTimes>& steps, const std::vector<double>& least);

// Mean over the steps, leaving out the first `skip` (warm-up) ones where there are more.
StepTimes mean_of(const std::vector<StepTimes>& steps, size_t skip);

// The q-quantile (0 to 1) by linear interpolation; 0 for no values.
double quantile(std::vector<double> values, double q);

}  // namespace renkei::timeline
