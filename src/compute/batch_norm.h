// Batch normalisation of images in blocked layout, together with what usually follows it:
//
//   y = x̂ γ + β  (+ residual)  (→ ReLU),    x̂ = (x - mean) / √(variance + ε)
//
// in as few passes over memory as its definition allows. The statistics are a step of their own, so
// that they can be those of this rank, or be combined over ranks in between.
#pragma once

#include <vector>

#include "compute/blocked.h"

namespace renkei::compute {

// Of every channel, over the batch and all pixels.
struct ChannelStatistics {
  std::vector<float> mean;
  std::vector<float> variance;  // biased: divided by the count
};

// What follows the normalisation.
struct BatchNormTail {
  const float* residual = nullptr;  // added, if not null
  bool relu = false;
};

ChannelStatistics batch_norm_statistics(const ImageShape& shape, const float* x);

// With given statistics.
void batch_norm_apply(const ImageShape& shape, const float* x, const ChannelStatistics& statistics,
                      const float* gamma, const float* beta, float epsilon,
                      const BatchNormTail& tail, float* y);

// Both in one go; each block of channels is normalised while it is still in the cache.
ChannelStatistics batch_norm_forward(const ImageShape& shape, const float* x, const float* gamma,
                                     const float* beta, float epsilon, const BatchNormTail& tail,
                                     float* y);

// Per channel, over the batch and all pixels; `g` is the gradient of y, through the ReLU.
struct BatchNormSums {
  std::vector<float> g;       // Σ g: the gradient of β
  std::vector<float> g_xhat;  // Σ g x̂: the gradient of γ
};

struct BatchNormBackward {
  ImageShape shape;
  const float* x;
  const float* y;  // the output: needed with a residual and a ReLU, else ignored
  const ChannelStatistics& statistics;
  const float* gamma;
  const float* beta;
  float epsilon;
  bool relu;
  const float* y_gradient;
  float* x_gradient;
  float* residual_gradient;  // null: there was no residual
};

// The gradients, where the statistics are those of x itself.
BatchNormSums batch_norm_backward(const BatchNormBackward& work);

// The same in two steps, for statistics over several ranks: sums of this rank; then, with the sums
// and the number of values of a channel over all ranks, the gradients.
BatchNormSums batch_norm_backward_sums(const BatchNormBackward& work);
void batch_norm_backward_apply(const BatchNormBackward& work, const BatchNormSums& sums,
                               double values_per_channel);

}  // namespace renkei::compute
