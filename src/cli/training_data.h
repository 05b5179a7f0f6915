// Opens what --data names.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/settings.h"
#include "data/dataset.h"
#include "data/parallel.h"

namespace renkei::cli {

void declare_data_settings(Settings& settings);

// What the network wants to see.
struct DataNeeds {
  std::vector<int64_t> sample_shape;
  int64_t classes = 0;      // of random data, where it is a classification …
  int64_t target_size = 0;  // … or the size of a target, where it is not
  int64_t outputs = 0;      // values the network gives per sample
  int threads = 1;          // for loading
};

struct TrainingData {
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<data::Dataset> held_out;  // null: there is none
};

// Throws an Error when the data is missing or does not fit the network.
TrainingData open_training_data(const Settings& settings, const DataNeeds& needs);

}  // namespace renkei::cli
