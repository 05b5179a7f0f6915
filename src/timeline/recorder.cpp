#include "timeline/recorder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace renkei::timeline {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::compute:
      return "compute";
    case Category::communication:
      return "communication";
    case Category::wait:
      return "wait";
    case Category::bubble:
      return "bubble";
    case Category::data:
      return "data";
    case Category::update:
      return "update";
    case Category::checkpoint:
      return "checkpoint";
    case Category::other:
      return "other";
  }
  return "";
}

void Recorder::begin_step(double now) {
  begin_ = now;
  current_ = {};
}

void Recorder::end_step(double now) {
  current_.seconds = now - begin_;
  const auto& parts = current_.by_category;
  const double accounted = std::accumulate(parts.begin(), parts.end(), 0.0);
  current_[Category::other] += current_.seconds - accounted;
  steps_.push_back(current_);
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
