// The settings of a training run, declared without Torch: so every program knows every setting.
// They are read in train_settings.cpp and compute_options.h; those of the update, train.lr among
// them, are in optim/settings.h.
#pragma once

#include "base/settings.h"

namespace renkei::run {

void declare_settings(Settings& settings);

// Which kernels are used, beside those of the rewrites (rewrite/rewrite.h).
void declare_compute_settings(Settings& settings);

}  // namespace renkei::run
