// 3 × 3 convolutions of stride 1 by Winograd's method F(4×4, 3×3): an output tile of 4 × 4 pixels
// takes 36 multiplications per pair of channels in place of 144.
//
//   V = Bᵀ d B      of every 6 × 6 input tile d (tiles overlap by 2)
//   U = G g Gᵀ      of every 3 × 3 filter g
//   M = Σ U ⊙ V     over the input channels: 36 matrix products
//   Y = Aᵀ M A      of every tile
//
// The gradient of the input is a forward convolution with turned filters; that of the filters is
// the same method transposed: Gᵀ (Σ over tiles V ⊙ A dY Aᵀ) G.
//
// The transforms cost accuracy: against a direct sum, errors grow from about 1e-7 to 1e-5 of the
// largest value, which tests/compute/winograd_test.cpp bounds.
#pragma once

#include "compute/convolution.h"

namespace renkei::compute {

// Whether the method can be used, and pays, for this shape and direction. Depends on the shape
// only, so that a run's bits do not depend on measurements.
struct WinogradChoice {
  bool forward = false, backward_input = false, backward_weights = false;
};
WinogradChoice winograd_choice(const ConvolutionShape& shape);

void winograd_forward(const ConvolutionShape& shape, const float* input, const float* weights,
                      const float* bias, bool relu, float* output);
void winograd_backward_input(const ConvolutionShape& shape, const float* output_gradient,
                             const float* weights, float* input_gradient);
void winograd_backward_weights(const ConvolutionShape& shape, const float* input,
                               const float* output_gradient, Write write, float* weight_gradient);

}  // namespace renkei::compute
