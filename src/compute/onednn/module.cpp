#include "compute/onednn/engine.h"

namespace renkei::compute::onednn {
namespace {

Host host;

class Kernels : public Module {
 public:
  std::unique_ptr<ConvolutionKernels> convolution(const ConvolutionShape& shape) const override {
    return guarded("convolution", [&] { return make_convolution(shape); });
  }
  void multiply(const MatrixProduct& product, const float* a, const float* b,
                float* c) const override {
    guarded("product of matrices", [&] { onednn::multiply(product, a, b, c); });
  }
};

}  // namespace

float* scratch(size_t count, int slot) {
  return host.scratch(count, slot);
}

}  // namespace renkei::compute::onednn

extern "C" __attribute__((visibility("default"))) const renkei::compute::onednn::Module*
renkei_onednn(const renkei::compute::onednn::Host& host) {
  static const renkei::compute::onednn::Kernels kernels;
  renkei::compute::onednn::host = host;
  // Below, oneDNN has only reference loops for images in blocks of channels.
  const bool new_enough = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return new_enough ? &kernels : nullptr;
}
