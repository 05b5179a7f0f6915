// Recordings of a network as a training run needs them.
#pragma once

#include "data/dataset.h"
#include "model/capture.h"
#include "model/network.h"

namespace renkei::run {

// From a batch to the sum of the losses of its samples.
model::Capture capture_training(model::Network& network, model::Objective objective,
                                const data::Dataset& data, int64_t samples);

// The same in evaluation, and second, where samples have labels, how many were predicted. Leaves
// the network in training mode.
model::Capture capture_evaluation(model::Network& network, model::Objective objective,
                                  const data::Dataset& data, int64_t samples);

}  // namespace renkei::run
