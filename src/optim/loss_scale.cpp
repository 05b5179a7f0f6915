#include "optim/loss_scale.h"

#include <algorithm>

#include "base/error.h"

namespace renkei::optim {

LossScale::LossScale(const LossScaleOptions& options) : options_(options), scale_(options.scale) {
  if (!(scale_ > 0) || options_.growth_interval < 1)
    throw Error(ErrorCode::usage,
                fmt::format("a loss scale of {} that grows every {} steps is not possible", scale_,
                            options_.growth_interval),
                "both numbers must be over 0");
}

void LossScale::go_on_from(double scale, int64_t good_steps) {
  if (!options_.dynamic) return;
  scale_ = scale;
  good_steps_ = good_steps;
}

bool LossScale::should_update(bool gradients_are_finite) {
  if (!options_.dynamic) return true;
  if (!gradients_are_finite) {
    // A smaller loss than the real one helps nobody.
    scale_ = std::max(scale_ / 2, std::min(1.0, options_.scale));
    good_steps_ = 0;
    return false;
  }
  if (++good_steps_ == options_.growth_interval) {
    constexpr double kLargest = 0x1p40;
    scale_ = std::min(scale_ * 2, kLargest);
    good_steps_ = 0;
  }
  return true;
}

}  // namespace renkei::optim
