// A saved network on the samples of a data set, by all ranks, with the results in the order of the
// samples. Each rank computes its part of a batch and writes it down, as lines or as bytes; rank 0
// puts the parts behind one another. A batch at a time: no rank ever holds all results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transport/transport.h"
#include "data/dataset.h"
#include "job/training_data.h"
#include "run/compute_options.h"
#include "run/make_model.h"

namespace renkei::job {

// What the network takes of a sample to predict: no target, and nothing that only a loss needs.
DataNeeds prediction_needs(const run::BoundProgram& predictor, const networks::Network& network,
                           int threads);

enum class PredictionFormat {
  json_lines,  // {"sample": 0, "NAME": [...]} with all outputs
  npy          // the main output, a row for each sample
};

struct PredictionOptions {
  PredictionFormat format = PredictionFormat::json_lines;
  int64_t top = 0;  // more than 0: of the main output, the places of this many highest values
  int64_t batch_per_rank = 64;
  run::ComputeOptions compute = {};
  data::LoaderOptions loader = {};
  double timeout_seconds = 300;
};

// `write` is called on rank 0, in order; what it gets is a complete file in the end. `tell` hears
// there how many samples are done. All ranks together.
void predict(const run::BoundProgram& predictor, const data::Dataset& samples,
             comm::Transport& transport, const PredictionOptions& options,
             const std::function<void(std::string_view)>& write,
             const std::function<void(int64_t)>& tell = {});

}  // namespace renkei::job
