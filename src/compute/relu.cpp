#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/relu.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include <algorithm>

#include "compute/relu.h"
#include "compute/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

template <int kWidth>
void bias_relu_backward(const ImageShape& shape, int64_t block, const float* y,
                        const float* y_gradient, float* x_gradient, double* sums) {
  const int64_t values = shape.pixels() * kWidth;
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t image = (n * shape.blocks() + block) * values;
    V<kWidth> sum = {};
    for (int64_t i = image; i < image + values; i += kWidth) {
      auto g = load<V<kWidth>>(y_gradient + i);
      if (y) {
        g = through_relu(load<V<kWidth>>(y + i), g);
        store(g, x_gradient + i);
      }
      sum += g;
    }
    for (int c = 0; c < kWidth; ++c) sums[c] += static_cast<double>(sum[c]);
  }
}

// One channel block. `y` null: no ReLU, and nothing is written but the sums.
void BiasReluBackward(const ImageShape& shape, int64_t block, const float* y,
                      const float* y_gradient, float* x_gradient, double* sums) {
  with_width(shape.block, [&](auto width) {
    bias_relu_backward<width()>(shape, block, y, y_gradient, x_gradient, sums);
  });
}

void Relu(int64_t count, float* x) {
  int64_t i = 0;
  for (; i + kWide <= count; i += kWide) store(positive_part(load<Wide>(x + i)), x + i);
  for (; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}

void ReluBackward(int64_t count, const float* y, const float* y_gradient, float* x_gradient) {
  int64_t i = 0;
  for (; i + kWide <= count; i += kWide)
    store(through_relu(load<Wide>(y + i), load<Wide>(y_gradient + i)), x_gradient + i);
  for (; i < count; ++i) x_gradient[i] = y[i] <= 0 ? 0 : y_gradient[i];
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(BiasReluBackward);
HWY_EXPORT(Relu);
HWY_EXPORT(ReluBackward);

namespace {

// What a thread takes at once.
constexpr int64_t kPiece = 1 << 14;

template <typename Work>
void for_pieces(int64_t count, Work work) {
#pragma omp parallel for
  for (int64_t first = 0; first < count; first += kPiece)
    work(first, std::min(kPiece, count - first));
}

}  // namespace

void bias_relu_backward(const ImageShape& shape, const float* y, const float* y_gradient,
                        float* x_gradient, Write write, float* bias_gradient) {
#pragma omp parallel for
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    double sums[16] = {};
    HWY_DYNAMIC_DISPATCH(BiasReluBackward)(shape, block, y, y_gradient, x_gradient, sums);
    if (!bias_gradient) continue;
    float* out = bias_gradient + block * shape.block;
    for (int64_t c = 0; c < shape.block; ++c)
      out[c] = (write == Write::add ? out[c] : 0) + static_cast<float>(sums[c]);
  }
}

void bias_backward(const ImageShape& shape, const float* y_gradient, Write write,
                   float* bias_gradient) {
  bias_relu_backward(shape, nullptr, y_gradient, nullptr, write, bias_gradient);
}

void relu_in_place(int64_t count, float* x) {
  const auto relu = HWY_DYNAMIC_DISPATCH(Relu);
  for_pieces(count, [&](int64_t first, int64_t piece) { relu(piece, x + first); });
}

void relu_backward(int64_t count, const float* y, const float* y_gradient, float* x_gradient) {
  const auto backward = HWY_DYNAMIC_DISPATCH(ReluBackward);
  for_pieces(count, [&](int64_t first, int64_t piece) {
    backward(piece, y + first, y_gradient + first, x_gradient + first);
  });
}

}  // namespace renkei::compute
#endif
