#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/loader/loader.h"
#include "data/sampler.h"

namespace renkei::run {

struct Batch {
  torch::Tensor input;   // samples × sample shape
  torch::Tensor target;  // samples (labels), or samples × target size
  int64_t samples = 0;

  const torch::Tensor& field(std::string_view name) const {
    return name == "target" ? target : input;
  }
};

// Turns the samples that this rank takes in a step into tensors. Data sets on storage are loaded
// ahead by threads; those in memory are copied when they are needed.
class BatchLoader {
 public:
  // The rank is that of the options. The data set has a field "target", and "input" or several,
  // "input.0", "input.1" …, which become one row.
  BatchLoader(const data::Dataset& dataset, data::Sampler sampler, data::LoaderOptions options);
  // At an orderly end, all ranks together.
  void close();

  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  int64_t global_samples(int64_t step) const { return sampler_.batch(step).size(); }

  // Micro-batch `part` of `parts` of this rank's share of the step.
  Batch load(int64_t epoch, int64_t step, int part, int parts);
  // Some slices of it, one after the other.
  Batch load(int64_t epoch, int64_t step, const std::vector<data::Slice>& in_share);

 private:
  Batch load(int64_t epoch, int64_t step, data::Slice in_share);
  // A tensor for each of the fields, of the field's own type.
  std::vector<torch::Tensor> copy(int64_t epoch, data::Slice positions) const;
  std::vector<torch::Tensor> view(int64_t epoch, int64_t step, data::Slice in_share);

  const data::Dataset& dataset_;
  data::Sampler sampler_;
  int rank_;
  std::vector<size_t> fields_;                       // of the data set: the inputs, then the target
  std::unique_ptr<data::Loader> ahead_;              // null: the data is in memory
  std::shared_ptr<const data::LoadedBatch> loaded_;  // the share of the step under way
};

}  // namespace renkei::run
