#pragma once

#include "base/settings.h"
#include "optim/learning_rate.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"

namespace renkei::optim {

void declare_settings(Settings& settings);

OptimizerOptions optimizer_options(const Settings& settings);
ScheduleOptions schedule_options(const Settings& settings);
LossScaleOptions loss_scale_options(const Settings& settings);
// The norm that gradients are clipped to; none: no clipping.
std::optional<double> clip_norm(const Settings& settings);
// Whether parameters with one dimension (biases, scales) decay like the others.
bool vectors_decay(const Settings& settings);

}  // namespace renkei::optim
