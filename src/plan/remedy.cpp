#include "plan/remedy.h"

#include <algorithm>

namespace renkei::plan {
namespace {

// Whether anything fits, by the layouts that need the least: the smallest micro-batches, few of
// them in flight, the state of the optimizer sharded.
bool fits(const Problem& problem, const StepModel& steps, SearchOptions options) {
  options.micro_batches = {micro_batch_choices(problem.batch, options).back()};
  options.exact_nodes = 0;
  options.progress = {};
  return search(Objective(problem, steps), options).best.has_value();
}

}  // namespace

Remedy find_remedy(const Problem& problem, const StepModel& steps, const SearchOptions& options) {
  Remedy remedy;
  Problem trial = problem;
  const auto with_memory = [&](int64_t bytes) {
    trial.memory_bytes = bytes;
    return fits(trial, steps, options);
  };
  constexpr int64_t kMost = int64_t{1} << 50;
  int64_t low = 0, high = int64_t{1} << 20;
  while (high < kMost && !with_memory(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > high / 100) {
    const int64_t middle = low + (high - low) / 2;
    (with_memory(middle) ? high : low) = middle;
  }
  if (high < kMost) remedy.memory_bytes = high;

  trial = problem;
  const int available = problem.machine.device_count();
  const auto with_devices = [&](int count) {
    trial.devices = places(problem.machine, count);
    return fits(trial, steps, options);
  };
  int few = static_cast<int>(problem.devices.size()), many = few;
  while (many < available) {
    few = many;
    many = std::min(2 * many, available);
    if (with_devices(many)) {
      while (many - few > 1) {
        const int middle = few + (many - few) / 2;
        (with_devices(middle) ? many : few) = middle;
      }
      remedy.devices = many;
      break;
    }
  }

  trial = problem;
  if (options.micro_batches.empty())
    for (trial.batch = problem.batch / 2; trial.batch >= 1 && !remedy.batch; trial.batch /= 2)
      if (fits(trial, steps, options)) remedy.batch = trial.batch;
  return remedy;
}

}  // namespace renkei::plan
