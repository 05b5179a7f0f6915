// Convolutions in blocked layout by oneDNN's kernels. Weights and their gradients stay in PyTorch's
// plain layout [out][in / groups][kernel height][kernel width] outside; reordering them costs
// little beside the images.
#pragma once

#include <compare>
#include <memory>

#include "compute/blocked.h"

namespace renkei::compute {

namespace onednn {
class ConvolutionKernels;
}

struct ConvolutionShape {
  int64_t batch = 0, in_channels = 0, height = 0, width = 0;
  int64_t out_channels = 0, kernel_height = 0, kernel_width = 0;
  int64_t stride_height = 1, stride_width = 1, padding_height = 0, padding_width = 0;
  int64_t dilation_height = 1, dilation_width = 1;  // 1: the pixels under a filter are neighbours
  int64_t groups = 1;                               // as many as channels: a depthwise convolution
  int64_t in_block = kBlock, out_block = kBlock;    // of the images' layout

  int64_t out_height() const {
    return (height + 2 * padding_height - reach(kernel_height, dilation_height)) / stride_height +
           1;
  }
  int64_t out_width() const {
    return (width + 2 * padding_width - reach(kernel_width, dilation_width)) / stride_width + 1;
  }
  ImageShape input() const { return {batch, in_channels, height, width, in_block}; }
  ImageShape output() const { return {batch, out_channels, out_height(), out_width(), out_block}; }
  int64_t weights() const {
    return out_channels * (in_channels / groups) * kernel_height * kernel_width;
  }
  // The input stays plain where its channels do not fill a block: the pictures themselves.
  bool input_is_blocked() const { return input().can_be_blocked(); }
  double flops() const;  // of the forward direction

  auto operator<=>(const ConvolutionShape&) const = default;

 private:
  static int64_t reach(int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }
};

// How a gradient goes into memory that may hold one already.
enum class Write { replace, add };

// The kernels for one shape, made once and kept: use convolution_for().
class Convolution {
 public:
  explicit Convolution(const ConvolutionShape& shape);
  ~Convolution();

  // `bias` may be null. With `relu`, negative results become 0.
  void forward(const float* input, const float* weights, const float* bias, bool relu,
               float* output);
  void backward_input(const float* output_gradient, const float* weights, float* input_gradient);
  void backward_weights(const float* input, const float* output_gradient, Write write,
                        float* weight_gradient);

 private:
  int64_t outputs_;
  std::unique_ptr<onednn::ConvolutionKernels> kernels_;
};

Convolution& convolution_for(const ConvolutionShape& shape);

}  // namespace renkei::compute
