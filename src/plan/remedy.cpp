#include "plan/remedy.h"

#include <algorithm>

#include "base/clock.h"

namespace renkei::plan {
namespace {

class Trials {
 public:
  Trials(const Problem& problem, const StepModel& steps, const SearchOptions& options)
      : problem_(problem), steps_(steps), options_(options), begin_(now_seconds()) {
    options_.exact_nodes = 0;
    options_.first_fit = true;
    options_.progress = {};
  }

  Remedy run() { return {.memory_bytes = memory(), .devices = devices(), .batch = batch()}; }

 private:
  double seconds_left() const { return begin_ + options_.time_limit_seconds - now_seconds(); }

  // Whether anything fits, by the layouts that need the least: the smallest micro-batches, few of
  // them in flight, the state of the optimizer sharded. Without time nothing is said to fit.
  bool fits(const Problem& trial) const {
    SearchOptions options = options_;
    options.micro_batches = {micro_batch_choices(trial.batch, options_).back()};
    options.time_limit_seconds = seconds_left();
    if (options.time_limit_seconds <= 0) return false;
    return search(Objective(trial, steps_), options).best.has_value();
  }

  std::optional<int64_t> memory() const {
    Problem trial = problem_;
    const auto enough = [&](int64_t bytes) {
      trial.memory_bytes = bytes;
      return fits(trial);
    };
    constexpr int64_t kMost = int64_t{1} << 50;
    int64_t low = 0, high = int64_t{1} << 20;
    while (!enough(high)) {
      low = high;
      high *= 2;
      if (high >= kMost || seconds_left() <= 0) return std::nullopt;
    }
    while (high - low > high / 100 && seconds_left() > 0) {
      const int64_t middle = low + (high - low) / 2;
      (enough(middle) ? high : low) = middle;
    }
    return high;
  }

  std::optional<int> devices() const {
    Problem trial = problem_;
    const int available = problem_.machine.device_count();
    const auto enough = [&](int count) {
      trial.devices = places(problem_.machine, count);
      return fits(trial);
    };
    int few = static_cast<int>(problem_.devices.size()), many = few;
    while (many < available && seconds_left() > 0) {
      few = many;
      many = std::min(2 * many, available);
      if (!enough(many)) continue;
      while (many - few > 1 && seconds_left() > 0) {
        const int middle = few + (many - few) / 2;
        (enough(middle) ? many : few) = middle;
      }
      return many;
    }
    return std::nullopt;
  }

  std::optional<int64_t> batch() const {
    if (!options_.micro_batches.empty()) return std::nullopt;
    Problem trial = problem_;
    for (trial.batch = problem_.batch / 2; trial.batch >= 1; trial.batch /= 2)
      if (fits(trial)) return trial.batch;
    return std::nullopt;
  }

  const Problem& problem_;
  const StepModel& steps_;
  SearchOptions options_;
  double begin_;
};

}  // namespace

Remedy find_remedy(const Problem& problem, const StepModel& steps, const SearchOptions& options) {
  return Trials(problem, steps, options).run();
}

}  // namespace renkei::plan
