// From an opened network to a model that can be trained: its programs with the loss, made fast, and
// its tensors with their first values.
#pragma once

#include <filesystem>

#include "capture/open_network.h"
#include "comm/transport/transport.h"
#include "rewrite/rewrite.h"
#include "run/model.h"
#include "shard/shard.h"

namespace renkei::run {

struct ModelOptions {
  uint64_t seed = 1;
  // A file of values to start from, or a run or a checkpoint, in place of the seed's.
  std::filesystem::path weights = {};
  rewrite::RewriteOptions rewrite = {};
  int threads = 1;         // that make values
  bool on_demand = false;  // tensors of the training state come into being when they are needed
  shard::ShardOptions shard = {};  // the part that this rank computes
};

// Throws a data Error where a file has no values, or such that do not fit.
Model make_model(const capture::OpenNetwork& open, const networks::LossOptions& loss,
                 const ModelOptions& options);

// The network as it predicts, without a loss: its outputs that have a row for each sample.
BoundProgram make_predictor(const capture::OpenNetwork& open, const ModelOptions& options,
                            capture::Predicted predicted = capture::Predicted::all);

ModelOptions model_options(const Settings& settings, int threads);
// All ranks together: of a run that is still under way, all take the same checkpoint.
ModelOptions model_options(const Settings& settings, int threads, comm::Transport& transport);

// A parameter or buffer as a file of the model has it, by its name in Python's state_dict; tied
// ones are there under all their names.
struct NamedPlace {
  std::string name;
  size_t place;  // in the training state
  program::DType dtype;
  std::vector<int64_t> sizes;
};
std::vector<NamedPlace> named_places(const Model& model);

}  // namespace renkei::run
