// The learning rate as a function of the step.
//
// The peak rate is `learning_rate`, times batch / reference_batch if there is a reference batch
// (the linear scaling rule of Goyal et al., "Accurate, large minibatch SGD", 2017). During the
// warm-up the rate grows linearly from `warmup_from` and reaches the peak in its last step. After
// it, e the epoch with fractions, counted from 0, and E the number of epochs:
//
//   constant     the peak
//   steps        the peak times decay^(number of milestones ≤ e)
//   cosine       from the peak to the peak times final_fraction along half a cosine
//   slow_start   1/2, 0.075, 0.01 and 0.001 of the peak, changing at 40/90, 70/90 and 85/90 of E
//                (Akiba, Suzuki and Fukuda, "Extremely large minibatch SGD", 2017)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace renkei::optim {

enum class ScheduleKind { constant, steps, cosine, slow_start };

std::string_view name_of(ScheduleKind kind);

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  double learning_rate = 0.01;
  std::optional<int64_t> reference_batch;  // none: the rate is not scaled
  double warmup_epochs = 0;
  // Where the warm-up starts. By itself the rate without scaling, or 0 if there is no scaling.
  std::optional<double> warmup_from;
  std::vector<double> milestones = {30, 60, 80};  // epochs
  double decay = 0.1;
  double final_fraction = 0;
};

// What the schedule must know of the run.
struct RunLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;
  int64_t batch = 1;  // samples in a step, over all ranks

  double epoch_of(int64_t step) const {
    return static_cast<double>(step) / static_cast<double>(steps_per_epoch);
  }
};

// The rate of a step; steps count from 0.
double learning_rate(const ScheduleOptions& options, const RunLength& run, int64_t step);

}  // namespace renkei::optim
