#include "compute/pooling.h"

#include <map>

#include "compute/onednn/loader.h"

namespace renkei::compute {
namespace {

onednn::PoolingKernels& kernels_for(const PoolingShape& shape) {
  static thread_local std::map<PoolingShape, std::unique_ptr<onednn::PoolingKernels>> made;
  auto& kernels = made[shape];
  if (!kernels) kernels = onednn::module().pooling(shape);
  return *kernels;
}

}  // namespace

size_t pooling_workspace_bytes(const PoolingShape& shape) {
  return shape.max ? kernels_for(shape).workspace_bytes() : 0;
}

void pooling_forward(const PoolingShape& shape, const float* input, float* output,
                     std::byte* workspace) {
  kernels_for(shape).forward(input, output, workspace);
}

void pooling_backward(const PoolingShape& shape, const float* output_gradient,
                      const std::byte* workspace, float* input_gradient) {
  kernels_for(shape).backward(output_gradient, workspace, input_gradient);
}

}  // namespace renkei::compute
