#pragma once

#include <torch/torch.h>

#include "model/network.h"

namespace renkei::run {

// The sum over the samples of each sample's cross entropy. A target is a label, or a row of labels
// for the positions of the output (pixels, tokens): then the loss of a sample is the mean over its
// positions, without those whose label is -100.
inline torch::Tensor summed_cross_entropy(const torch::Tensor& output, const torch::Tensor& target,
                                          double smoothing) {
  using Options = torch::nn::functional::CrossEntropyFuncOptions;
  const Options options = Options().label_smoothing(smoothing).ignore_index(-100);
  if (target.dim() == 1)
    return torch::nn::functional::cross_entropy(output, target,
                                                Options(options).reduction(torch::kSum));
  const int64_t samples = output.size(0), classes = output.size(1);
  const torch::Tensor labels = target.to(torch::kInt64);
  // Rows of scores, one per position: of language models they lie like this in memory.
  const torch::Tensor rows = output.flatten(2).transpose(1, 2).reshape({-1, classes});
  const torch::Tensor losses = torch::nn::functional::cross_entropy(
      rows, labels.flatten(), Options(options).reduction(torch::kNone));
  const torch::Tensor predicted = labels.ne(-100).sum(1).clamp_min(1);
  return (losses.view({samples, -1}).sum(1) / predicted).sum();
}

// The sum over the samples of each sample's loss: cross entropy, or the mean squared error over its
// outputs. A sum, because then micro-batches and ranks of any size just add up, and one division by
// the number of samples of the whole batch gives the mean that a single process would compute.
inline torch::Tensor summed_loss(model::Objective objective, const torch::Tensor& output,
                                 const torch::Tensor& target) {
  if (objective == model::Objective::regression) {
    const torch::Tensor row = output.flatten(1);
    return torch::mse_loss(row, target, at::Reduction::Sum) / static_cast<double>(row.size(1));
  }
  return summed_cross_entropy(
      output, target,
      objective == model::Objective::smoothed_classification ? model::kLabelSmoothing : 0);
}

// The same for all outputs of a network: those of auxiliary heads count with their weight.
inline torch::Tensor summed_loss(model::Objective objective, model::Network& network,
                                 const torch::Tensor& input, const torch::Tensor& target) {
  if (objective == model::Objective::own_loss) return network.own_loss(input, target);
  const model::Network::Outputs outputs = network.forward_all(input);
  torch::Tensor loss = summed_loss(objective, outputs.main, target);
  for (const torch::Tensor& auxiliary : outputs.auxiliary)
    loss = loss + outputs.auxiliary_weight * summed_loss(objective, auxiliary, target);
  return loss;
}

}  // namespace renkei::run
