#pragma once

#include <torch/torch.h>

#include "data/dataset.h"
#include "data/sampler.h"

namespace renkei::run {

struct Batch {
  torch::Tensor input;   // samples × sample shape
  torch::Tensor target;  // samples (labels), or samples × target size
  int64_t samples = 0;
};

// Turns the samples that this rank takes in a step into tensors.
class BatchLoader {
 public:
  BatchLoader(const data::Dataset& dataset, data::Sampler sampler, int rank)
      : dataset_(dataset), sampler_(sampler), rank_(rank) {}

  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  int64_t global_samples(int64_t step) const { return sampler_.batch(step).size(); }

  // Micro-batch `part` of `parts` of this rank's share of the step.
  Batch load(int64_t epoch, int64_t step, int part, int parts) const;

 private:
  const data::Dataset& dataset_;
  data::Sampler sampler_;
  int rank_;
};

}  // namespace renkei::run
