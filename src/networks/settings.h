// The settings of section "model", and what the objective of a training is.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"

namespace renkei::networks {

void declare_settings(Settings& settings);

// What the outputs mean, and so which loss is minimised.
enum class Objective {
  classification,           // scores of the classes in dimension 1; cross entropy
  smoothed_classification,  // the same with labels smoothed by kLabelSmoothing
  regression,               // values; mean squared error
  own_loss,                 // the network returns its loss
};
constexpr double kLabelSmoothing = 0.1;

// What train.loss says; empty where it is left to the network and the data.
std::optional<Objective> chosen_objective(const Settings& settings);

bool is_model_file(const std::string& name);  // not the name of a built-in network

// The name to show: of a file, its stem.
std::string model_name(const Settings& settings);

}  // namespace renkei::networks
