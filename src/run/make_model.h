// From an opened network to a model that can be trained: its programs with the loss, made fast, and
// its tensors with their first values.
#pragma once

#include <filesystem>

#include "capture/open_network.h"
#include "rewrite/rewrite.h"
#include "run/model.h"

namespace renkei::run {

struct ModelOptions {
  uint64_t seed = 1;
  std::filesystem::path weights = {};  // a file of values to start from, in place of the seed's
  rewrite::RewriteOptions rewrite = {};
  int threads = 1;  // that make values
};

// Throws a data Error where a file has no values, or such that do not fit.
Model make_model(const capture::OpenNetwork& open, const networks::LossOptions& loss,
                 const ModelOptions& options);

ModelOptions model_options(const Settings& settings, int threads);

// Writes a safetensors file that Python's load_state_dict takes.
void save_weights(const Model& model, const std::filesystem::path& file);

// All parameters and buffers that a file of the model has, by their names in Python's state_dict,
// tied ones under all of them.
std::vector<std::pair<std::string, torch::Tensor>> named_state(const Model& model);

}  // namespace renkei::run
