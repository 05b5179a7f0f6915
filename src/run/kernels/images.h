// Blocked images as tensors.
#pragma once

#include <vector>

#include "run/kernels/common.h"

namespace renkei::run::kernels {

inline compute::ImageShape shape_of(const Tensor& image) {
  return {image.size(0), image.size(1) * image.size(4), image.size(2), image.size(3),
          image.size(4)};
}

inline std::vector<int64_t> blocked_sizes(const compute::ImageShape& shape) {
  return {shape.batch, shape.blocks(), shape.height, shape.width, shape.block};
}

inline Tensor empty_image(const compute::ImageShape& shape) {
  return torch::empty(blocked_sizes(shape));
}

}  // namespace renkei::run::kernels
