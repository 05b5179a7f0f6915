#include "optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace renkei::optim {
namespace {

double slow_start(double fraction_of_run) {
  const double epoch_of_90 = fraction_of_run * 90;
  if (epoch_of_90 < 40) return 0.5;
  if (epoch_of_90 < 70) return 0.075;
  if (epoch_of_90 < 85) return 0.01;
  return 0.001;
}

double cosine(double fraction, double final_fraction) {
  const double half_wave = 0.5 * (1 + std::cos(std::numbers::pi * fraction));
  return final_fraction + (1 - final_fraction) * half_wave;
}

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::steps:
      return "steps";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::slow_start:
      return "slow_start";
  }
  return "an unknown schedule";
}

double learning_rate(const ScheduleOptions& options, const RunLength& run, int64_t step) {
  double peak = options.learning_rate;
  if (options.reference_batch)
    peak *= static_cast<double>(run.batch) / static_cast<double>(*options.reference_batch);

  const auto steps = static_cast<double>(run.steps), now = static_cast<double>(step);
  const double warmup_steps =
      std::round(options.warmup_epochs * static_cast<double>(run.steps_per_epoch));
  if (now < warmup_steps) {
    const double from =
        options.warmup_from.value_or(options.reference_batch ? options.learning_rate : 0);
    return from + (peak - from) * (now + 1) / warmup_steps;
  }
  switch (options.kind) {
    case ScheduleKind::constant:
      return peak;
    case ScheduleKind::steps: {
      const double epoch = run.epoch_of(step);
      const auto passed = std::ranges::count_if(
          options.milestones, [&](double milestone) { return milestone <= epoch; });
      return peak * std::pow(options.decay, static_cast<double>(passed));
    }
    case ScheduleKind::cosine:
      return peak * cosine((now - warmup_steps) / std::max(steps - warmup_steps, 1.0),
                           options.final_fraction);
    case ScheduleKind::slow_start:
      return peak * slow_start(now / steps);
  }
  return peak;
}

}  // namespace renkei::optim
