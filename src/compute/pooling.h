// Pooling of images in blocked layout. As in PyTorch, a value that is not a number is the largest
// of its window, and the gradient of a maximum goes to the first of equal values.
#pragma once

#include <compare>
#include <cstddef>

#include "compute/blocked.h"

namespace renkei::compute {

struct PoolingShape {
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t kernel = 0, stride = 1, padding = 0;
  bool max = true;            // else the average
  bool ceil = false;          // a last window may reach beyond the padding
  bool count_padding = true;  // in the average, as zeros
  int64_t block = kBlock;

  int64_t out_height() const { return windows(height); }
  int64_t out_width() const { return windows(width); }
  ImageShape input() const { return {batch, channels, height, width, block}; }
  ImageShape output() const { return {batch, channels, out_height(), out_width(), block}; }

  auto operator<=>(const PoolingShape&) const = default;

 private:
  int64_t windows(int64_t size) const {
    const int64_t room = size + 2 * padding - kernel;
    const int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
    // A window must begin within the image or the padding before it.
    return ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
  }
};

// Bytes that the forward direction leaves for the backward direction: which value was the largest.
size_t pooling_workspace_bytes(const PoolingShape& shape);

void pooling_forward(const PoolingShape& shape, const float* input, float* output,
                     std::byte* workspace);
void pooling_backward(const PoolingShape& shape, const float* output_gradient,
                      const std::byte* workspace, float* input_gradient);

}  // namespace renkei::compute
