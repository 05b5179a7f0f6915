#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/relu.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/relu.h"
#include "compute/vector8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

// One channel block. `y` null: no ReLU, and nothing is written but the sums.
void BiasReluBackward(const ImageShape& shape, int64_t block, const float* y,
                      const float* y_gradient, float* x_gradient, double* sums) {
  const int64_t blocks = shape.channels / kBlock, values = shape.pixels() * kBlock;
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t image = (n * blocks + block) * values;
    V8 sum = all(0);
    for (int64_t i = image; i < image + values; i += kBlock) {
      V8 g = load(y_gradient + i);
      if (y) {
        g = where_positive(load(y + i), g);
        store(g, x_gradient + i);
      }
      sum += g;
    }
    for (int c = 0; c < kBlock; ++c) sums[c] += static_cast<double>(sum[c]);
  }
}

void ReluBackward(int64_t count, const float* y, const float* y_gradient, float* x_gradient) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock)
    store(where_positive(load(y + i), load(y_gradient + i)), x_gradient + i);
  for (; i < count; ++i) x_gradient[i] = y[i] > 0 ? y_gradient[i] : 0;
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(BiasReluBackward);
HWY_EXPORT(ReluBackward);

void bias_relu_backward(const ImageShape& shape, const float* y, const float* y_gradient,
                        float* x_gradient, Write write, float* bias_gradient) {
#pragma omp parallel for
  for (int64_t block = 0; block < shape.channels / kBlock; ++block) {
    double sums[kBlock] = {};
    HWY_DYNAMIC_DISPATCH(BiasReluBackward)(shape, block, y, y_gradient, x_gradient, sums);
    if (!bias_gradient) continue;
    float* out = bias_gradient + block * kBlock;
    for (int c = 0; c < kBlock; ++c)
      out[c] = (write == Write::add ? out[c] : 0) + static_cast<float>(sums[c]);
  }
}

void bias_backward(const ImageShape& shape, const float* y_gradient, Write write,
                   float* bias_gradient) {
  bias_relu_backward(shape, nullptr, y_gradient, nullptr, write, bias_gradient);
}

void relu_backward(int64_t count, const float* y, const float* y_gradient, float* x_gradient) {
  HWY_DYNAMIC_DISPATCH(ReluBackward)(count, y, y_gradient, x_gradient);
}

}  // namespace renkei::compute
#endif
