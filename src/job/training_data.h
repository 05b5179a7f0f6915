// Opens what --data names.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/settings.h"
#include "data/dataset.h"
#include "data/field_map.h"
#include "data/image/image.h"
#include "data/parallel.h"
#include "networks/input_shapes.h"

namespace renkei::job {

void declare_data_settings(Settings& settings);

// What the network wants to see.
struct DataNeeds {
  std::vector<networks::InputShape> inputs;
  std::string target;  // what the input is called that the loss is computed from; empty: none
  std::function<std::unique_ptr<data::Dataset>(int64_t count, uint64_t seed)> make_random;
  int64_t outputs = 0;   // values the network gives per sample; 0: not known
  int threads = 1;       // for loading
  bool training = true;  // training samples may be changed at random (crops, mirroring)
};

struct TrainingData {
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<data::Dataset> held_out;  // null: there is none
};

// The inputs of the network and its target, for data::match_inputs().
std::vector<data::WantedInput> wanted_inputs(const DataNeeds& needs);

// Throws an Error when the data is missing or does not fit the network.
TrainingData open_training_data(const Settings& settings, const DataNeeds& needs);

// The settings data.mean and data.std.
data::Normalisation normalisation_of(const Settings& settings);

}  // namespace renkei::job
