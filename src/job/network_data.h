// The data that a network is trained with, and what is minimised.
#pragma once

#include "base/settings.h"
#include "job/training_data.h"
#include "networks/loss.h"
#include "networks/network.h"

namespace renkei::job {

// Samples as --data random makes them for the network.
std::unique_ptr<data::Dataset> make_random_data(const networks::Network& network, int64_t count,
                                                uint64_t seed);

DataNeeds needs_of(const networks::Network& network, int threads);

// What train.loss says; else what the data can be trained for.
networks::LossOptions loss_for(const Settings& settings, const networks::Network& network,
                               const data::Dataset& data);

// The same for data of make_random_data(), whatever data.source says.
networks::LossOptions loss_for_random_data(const Settings& settings,
                                           const networks::Network& network);

}  // namespace renkei::job
