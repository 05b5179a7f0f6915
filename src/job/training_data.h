// Opens what --data names.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/settings.h"
#include "data/dataset.h"
#include "data/image/image.h"
#include "data/parallel.h"

namespace renkei::job {

void declare_data_settings(Settings& settings);

// What the network wants to see.
struct DataNeeds {
  std::vector<int64_t> sample_shape;  // of its input
  std::function<std::unique_ptr<data::Dataset>(int64_t count, uint64_t seed)> make_random;
  int64_t outputs = 0;  // values the network gives per sample
  int threads = 1;      // for loading
};

struct TrainingData {
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<data::Dataset> held_out;  // null: there is none
};

// Throws an Error when the data is missing or does not fit the network.
TrainingData open_training_data(const Settings& settings, const DataNeeds& needs);

// The settings data.mean and data.std.
data::Normalisation normalisation_of(const Settings& settings);

}  // namespace renkei::job
