// Layer normalisation of rows:
//
//   y = x̂ γ + β,    x̂ = (x - mean) / √(variance + ε),    statistics of each row
//
// Backward, with h = g γ: the gradient of x is (h - mean(h) - x̂ mean(h x̂)) / √(variance + ε); those
// of γ and β are sums over the rows, taken in the same pass.
#pragma once

#include "compute/rows.h"

namespace renkei::compute {

// `gamma` and `beta` may be null: 1 and 0. `mean` and `inverse_deviation` get a value for each row,
// which the backward direction needs.
void layer_norm_forward(const RowShape& shape, const float* x, const float* gamma,
                        const float* beta, float epsilon, float* y, float* mean,
                        float* inverse_deviation);

struct LayerNormBackward {
  RowShape shape;
  const float* x;
  const float* mean;
  const float* inverse_deviation;
  const float* gamma;  // null: 1
  const float* y_gradient;
  float* x_gradient;  // null: not wanted
};

// `gamma_gradient` and `beta_gradient` may be null.
void layer_norm_backward(const LayerNormBackward& work, Write write_gamma, float* gamma_gradient,
                         Write write_beta, float* beta_gradient);

}  // namespace renkei::compute
