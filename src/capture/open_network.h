// The network that model.name asks for: a built-in one, or one from a .pt2 file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "capture/named_tensors.h"
#include "networks/loss.h"
#include "networks/network.h"

namespace renkei::capture {

struct OpenNetwork {
  networks::Network network;
  // Where evaluation is a program of its own; else it follows from that of training.
  std::optional<program::Program> evaluation;
  // The values of the state, where they come from the file; by name, tied ones under one.
  NamedTensors values;
};

OpenNetwork open_network(const Settings& settings);

enum class Predicted { all, main };

// The network in evaluation mode, with those outputs that have a row for each sample: all of them
// in their order, or the main one, which is the first of the network but for a loss. Throws a data
// Error where there is none.
program::Program prediction_of(const OpenNetwork& open, Predicted predicted = Predicted::all);

// The programs of a training, with the loss; without the fast kernels.
struct Programs {
  program::Program training;
  std::optional<program::Program> evaluation;
  std::optional<Error> no_evaluation;  // why there is none
};
Programs programs_of(const OpenNetwork& open, const networks::LossOptions& loss);

}  // namespace renkei::capture
