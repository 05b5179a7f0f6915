// Blocked images as tensors.
#pragma once

#include <vector>

#include "run/kernels/common.h"

namespace renkei::run::kernels {

using compute::kBlock;

inline compute::ImageShape shape_of(const Tensor& image) {
  return {image.size(0), image.size(1) * kBlock, image.size(2), image.size(3)};
}

inline std::vector<int64_t> blocked_sizes(const compute::ImageShape& shape) {
  return {shape.batch, shape.channels / kBlock, shape.height, shape.width, kBlock};
}

inline Tensor empty_image(const compute::ImageShape& shape) {
  return torch::empty(blocked_sizes(shape));
}

}  // namespace renkei::run::kernels
