// A convolution by its definition, in double precision and plain layout.
#pragma once

#include <vector>

#include "compute/convolution.h"

namespace renkei::compute {

struct ConvolutionGradients {
  std::vector<double> input, weights;
};

// Calls term(output index, input index, weight index) for every product of the convolution.
template <typename Term>
void for_each_product(const ConvolutionShape& s, Term term) {
  const ImageShape in = s.input(), out = s.output();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t y = 0; y < out.height; ++y)
        for (int64_t x = 0; x < out.width; ++x)
          for (int64_t k = 0; k < s.in_channels / s.groups; ++k)
            for (int64_t i = 0; i < s.kernel_height; ++i)
              for (int64_t j = 0; j < s.kernel_width; ++j) {
                const int64_t c = o / (s.out_channels / s.groups) * (s.in_channels / s.groups) + k;
                const int64_t iy = y * s.stride_height + i * s.dilation_height - s.padding_height;
                const int64_t ix = x * s.stride_width + j * s.dilation_width - s.padding_width;
                if (iy < 0 || iy >= in.height || ix < 0 || ix >= in.width) continue;
                term(static_cast<size_t>(((n * out.channels + o) * out.height + y) * out.width + x),
                     static_cast<size_t>(((n * in.channels + c) * in.height + iy) * in.width + ix),
                     static_cast<size_t>(
                         ((o * (s.in_channels / s.groups) + k) * s.kernel_height + i) *
                             s.kernel_width +
                         j));
              }
}

inline std::vector<double> reference_forward(const ConvolutionShape& s,
                                             const std::vector<float>& input,
                                             const std::vector<float>& weights) {
  std::vector<double> output(static_cast<size_t>(s.output().count()));
  for_each_product(s, [&](size_t o, size_t i, size_t w) {
    output[o] += static_cast<double>(input[i]) * static_cast<double>(weights[w]);
  });
  return output;
}

inline ConvolutionGradients reference_backward(const ConvolutionShape& s,
                                               const std::vector<float>& input,
                                               const std::vector<float>& weights,
                                               const std::vector<float>& output_gradient) {
  ConvolutionGradients gradients{std::vector<double>(input.size()),
                                 std::vector<double>(weights.size())};
  for_each_product(s, [&](size_t o, size_t i, size_t w) {
    gradients.input[i] += static_cast<double>(output_gradient[o]) * static_cast<double>(weights[w]);
    gradients.weights[w] += static_cast<double>(output_gradient[o]) * static_cast<double>(input[i]);
  });
  return gradients;
}

}  // namespace renkei::compute
