#pragma once

#include <torch/torch.h>

#include "model/network.h"

namespace renkei::run {

// The sum over the samples of each sample's loss: cross entropy, or the mean squared error over its
// outputs. A sum, because then micro-batches and ranks of any size just add up, and one division by
// the number of samples of the whole batch gives the mean that a single process would compute.
inline torch::Tensor summed_loss(model::Objective objective, const torch::Tensor& output,
                                 const torch::Tensor& target) {
  if (objective == model::Objective::classification)
    return torch::nn::functional::cross_entropy(
        output, target, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  return torch::mse_loss(output, target, at::Reduction::Sum) / static_cast<double>(output.size(1));
}

// The same for all outputs of a network: those of auxiliary heads count with their weight.
inline torch::Tensor summed_loss(model::Objective objective, const model::Network::Outputs& outputs,
                                 const torch::Tensor& target) {
  torch::Tensor loss = summed_loss(objective, outputs.main, target);
  for (const torch::Tensor& auxiliary : outputs.auxiliary)
    loss = loss + outputs.auxiliary_weight * summed_loss(objective, auxiliary, target);
  return loss;
}

}  // namespace renkei::run
