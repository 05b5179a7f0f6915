// The built-in networks: programs with what a training needs to know about them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "program/program.h"

namespace renkei::networks {

// What a sample of random data has as its target.
enum class RandomTarget { label, numbers, label_per_position, next_token, masked_token };

// How `--data random` makes samples for a network.
struct RandomSample {
  RandomTarget target = RandomTarget::label;
  std::vector<int64_t> below = {};  // of each input, whole numbers below this; 0, or none: noise
  int64_t classes = 0;              // labels or tokens to choose from
  int64_t target_size = 0;          // numbers or labels in a target, where it is not one label
};

struct Network {
  // In training mode. Inputs have a row per sample; the main output comes first, then those of
  // auxiliary heads.
  program::Program training;
  int64_t outputs = 0;  // values per sample, or classes
  RandomSample random_sample = {};
  double auxiliary_weight = 0;  // of the auxiliary heads' losses, in training
  // The main output is the loss, and the last input, of several, what it is computed from.
  bool computes_loss = false;
};

struct NetworkDescription {
  std::string name;
  std::string summary;
  std::function<Network(const Settings&)> make;
};
const std::vector<NetworkDescription>& networks();

// Builds the network that model.name asks for, which must not be a file.
Network make_network(const Settings& settings);

int64_t count_parameters(const program::Program& program);

}  // namespace renkei::networks
