// The loss is multiplied by a large number before backward so that small gradients survive formats
// with few bits, and the gradients are divided by it before the update. A dynamic scale looks for
// the largest one that does not overflow: it is halved by each overflow, whose step is left out,
// and doubled after many steps without one.
#pragma once

#include <cstdint>

namespace renkei::optim {

struct LossScaleOptions {
  bool dynamic = false;
  double scale = 1;  // to begin with, if dynamic
  int64_t growth_interval = 2000;
};

class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options);

  double scale() const { return scale_; }
  int64_t good_steps() const { return good_steps_; }  // since the last change
  // As it was when a training was interrupted. A fixed scale stays what the options say.
  void go_on_from(double scale, int64_t good_steps);

  // Call in each step, on all ranks with the same answer to: are all gradients finite? True:
  // update. False: leave this step out. A fixed scale never leaves out a step.
  bool should_update(bool gradients_are_finite);

 private:
  LossScaleOptions options_;
  double scale_;
  int64_t good_steps_ = 0;
};

}  // namespace renkei::optim
