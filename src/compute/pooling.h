// Pooling of images in blocked layout, by oneDNN.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "compute/blocked.h"

namespace renkei::compute {

struct PoolingShape {
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t kernel = 0, stride = 1, padding = 0;
  bool max = true;  // else the average, in which padding counts as zeros

  int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  ImageShape input() const { return {batch, channels, height, width}; }
  ImageShape output() const { return {batch, channels, out_height(), out_width()}; }

  auto operator<=>(const PoolingShape&) const = default;
};

// Bytes that the forward direction leaves for the backward direction: which value was the largest.
size_t pooling_workspace_bytes(const PoolingShape& shape);

void pooling_forward(const PoolingShape& shape, const float* input, float* output,
                     std::byte* workspace);
void pooling_backward(const PoolingShape& shape, const float* output_gradient,
                      const std::byte* workspace, float* input_gradient);

}  // namespace renkei::compute
