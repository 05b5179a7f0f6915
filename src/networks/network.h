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
  struct Input {
    int64_t size;
    int64_t below = 0;  // 0: noise; otherwise whole numbers below this
  };
  RandomTarget target = RandomTarget::label;
  std::vector<Input> inputs = {};  // one after another in a row; empty: noise of the input shape
  int64_t classes = 0;             // labels or tokens to choose from
  int64_t target_size = 0;         // numbers or labels in a target, where it is not one label
};

struct Network {
  // In training mode. One f32 input with a row per sample, or several (join_inputs.h makes them
  // one); the main output comes first, then those of auxiliary heads.
  program::Program training;
  int64_t outputs = 0;               // values per sample, or classes
  std::vector<int64_t> input_shape;  // of one sample
  RandomSample random_sample = {};
  double auxiliary_weight = 0;  // of the auxiliary heads' losses, in training
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
