// The data that a network is trained with, and what is minimised.
#pragma once

#include "base/settings.h"
#include "cli/training_data.h"
#include "model/network.h"

namespace renkei::cli {

// Samples as --data random makes them for the network.
std::unique_ptr<data::Dataset> make_random_data(const model::Network& network, int64_t count,
                                                uint64_t seed);

DataNeeds needs_of(const model::Network& network, int threads);

// What train.loss says; by itself what the data can be trained for.
model::Objective objective_for(const Settings& settings, const model::Network& network,
                               const data::Dataset& data);

}  // namespace renkei::cli
