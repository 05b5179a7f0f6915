#include "timeline/recorder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "timeline/rank_file.h"

namespace renkei::timeline {

void Recorder::begin_step(double now, int64_t step, int64_t samples) {
  current_ = {.step = step, .begin = now, .times = {}, .samples = samples};
}

void Recorder::enter(const Event& event) {
  if (file_) file_->enter(event);
}

void Recorder::add(const Event& event) {
  add(event.category, event.seconds());
  if (!file_) return;
  file_->add(event);
  file_->leave(event.end);
}

void Recorder::note(const Event& event) {
  if (file_) file_->add(event);
}

void Recorder::end_step(double now) {
  StepTimes& times = current_.times;
  times.seconds = now - current_.begin;
  const auto& parts = times.by_category;
  const double accounted = std::accumulate(parts.begin(), parts.end(), 0.0);
  times[Category::other] += times.seconds - accounted;
  current_.memory_bytes = memory_bytes_;
  steps_.push_back(times);
  if (file_) file_->add(current_);
}

void split_waiting(std::vector<StepTimes>& steps, const std::vector<double>& least) {
  for (size_t s = 0; s < steps.size() && s < least.size(); ++s) {
    const double waited = std::max(0.0, steps[s][Category::communication] - least[s]);
    steps[s][Category::communication] -= waited;
    steps[s][Category::wait] += waited;
  }
}

StepTimes mean_of(const std::vector<StepTimes>& steps, size_t skip) {
  if (skip >= steps.size()) skip = 0;
  StepTimes mean;
  const auto count = static_cast<double>(steps.size() - skip);
  for (size_t s = skip; s < steps.size(); ++s) {
    mean.seconds += steps[s].seconds / count;
    for (size_t c = 0; c < kCategories; ++c) mean.by_category[c] += steps[s].by_category[c] / count;
  }
  return mean;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - std::floor(place));
}

}  // namespace renkei::timeline
