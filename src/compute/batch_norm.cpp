#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/batch_norm.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/batch_norm.h"
#include "compute/vector-inl.h"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

template <int kWidth>
struct Sums {
  double values[kWidth] = {};
  void add(V<kWidth> sums) {
    for (int c = 0; c < kWidth; ++c) values[c] += static_cast<double>(sums[c]);
  }
};

// Sums in single precision are only taken over so many values; above, in double. Torch takes all in
// double; gradients of deep networks show the difference where runs are longer.
constexpr int64_t kRun = 64;

// Calls work(first, count) for runs of pixels of a channel block: `first` is the offset of the
// run's first value.
template <int kWidth, typename Work>
inline void for_runs(const ImageShape& shape, int64_t block, Work work) {
  const int64_t blocks = shape.channels / kWidth, pixels = shape.pixels();
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t image = (n * blocks + block) * pixels * kWidth;
    for (int64_t p = 0; p < pixels; p += kRun) work(image + p * kWidth, std::min(kRun, pixels - p));
  }
}

template <int kWidth>
void statistics(const ImageShape& shape, const float* x, int64_t block, float* mean,
                float* variance) {
  // Sums of differences from some value of the channel: no cancellation where the mean is large.
  const V<kWidth> shift = load<V<kWidth>>(x + block * shape.pixels() * kWidth);
  Sums<kWidth> sum, squares;
  for_runs<kWidth>(shape, block, [&](int64_t first, int64_t count) {
    V<kWidth> s0 = V<kWidth>{}, s1 = V<kWidth>{}, q0 = V<kWidth>{}, q1 = V<kWidth>{};
    const float* from = x + first;
    int64_t i = 0;
    for (; i + 1 < count; i += 2, from += 2 * kWidth) {
      const V<kWidth> a = load<V<kWidth>>(from) - shift, b = load<V<kWidth>>(from + kWidth) - shift;
      s0 += a;
      s1 += b;
      q0 += a * a;
      q1 += b * b;
    }
    if (i < count) {
      const V<kWidth> a = load<V<kWidth>>(from) - shift;
      s0 += a;
      q0 += a * a;
    }
    sum.add(s0 + s1);
    squares.add(q0 + q1);
  });
  const auto values = static_cast<double>(shape.batch * shape.pixels());
  for (int c = 0; c < kWidth; ++c) {
    const double difference = sum.values[c] / values;
    mean[c] = static_cast<float>(static_cast<double>(shift[c]) + difference);
    const double square = squares.values[c] / values - difference * difference;
    variance[c] = static_cast<float>(square < 0 ? 0 : square);  // not a number stays one
  }
}

// y = (x - mean) scale + beta. The mean goes first: folded into one offset it would cost as many
// bits as it is larger than the deviation, and channels of a deep network hardly differ between
// samples.
template <int kWidth>
struct Affine {
  V<kWidth> mean, scale, beta;

  V<kWidth> operator()(V<kWidth> x) const { return (x - mean) * scale + beta; }
};

template <int kWidth>
inline Affine<kWidth> affine_of(const float* mean, const float* variance, const float* gamma,
                                const float* beta, float epsilon) {
  Affine<kWidth> affine;
  affine.mean = load<V<kWidth>>(mean);
  affine.beta = load<V<kWidth>>(beta);
  for (int c = 0; c < kWidth; ++c) affine.scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
  return affine;
}

template <int kWidth, bool kResidual, bool kRelu>
inline void apply(const ImageShape& shape, const float* x, int64_t block,
                  const Affine<kWidth>& affine, const float* residual, float* y) {
  for_runs<kWidth>(shape, block, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count * kWidth; i += kWidth) {
      V<kWidth> value = affine(load<V<kWidth>>(x + i));
      if constexpr (kResidual) value += load<V<kWidth>>(residual + i);
      if constexpr (kRelu) value = positive_part(value);
      store(value, y + i);
    }
  });
}

template <int kWidth>
void apply_any(const ImageShape& shape, const float* x, int64_t block, const float* mean,
               const float* variance, const float* gamma, const float* beta, float epsilon,
               const float* residual, bool relu, float* y) {
  const Affine<kWidth> affine = affine_of<kWidth>(mean, variance, gamma, beta, epsilon);
  if (residual && relu)
    apply<kWidth, true, true>(shape, x, block, affine, residual, y);
  else if (residual)
    apply<kWidth, true, false>(shape, x, block, affine, residual, y);
  else if (relu)
    apply<kWidth, false, true>(shape, x, block, affine, residual, y);
  else
    apply<kWidth, false, false>(shape, x, block, affine, residual, y);
}

// Where the sign of the output comes from: it is computed again unless a residual was added.
enum class Mask { none, from_x, from_y };

template <int kWidth, Mask kMask>
inline V<kWidth> gradient_of(const BatchNormBackward& work, const Affine<kWidth>& affine, int64_t i,
                             V<kWidth> gradient, V<kWidth> x) {
  if constexpr (kMask == Mask::from_x) return through_relu(affine(x), gradient);
  if constexpr (kMask == Mask::from_y) return through_relu(load<V<kWidth>>(work.y + i), gradient);
  return gradient;
}

template <int kWidth, Mask kMask>
inline void backward_sums(const BatchNormBackward& work, int64_t block, float* sum_g,
                          float* sum_g_xhat) {
  const int64_t c0 = block * kWidth;
  const Affine<kWidth> affine =
      affine_of<kWidth>(work.statistics.mean.data() + c0, work.statistics.variance.data() + c0,
                        work.gamma + c0, work.beta + c0, work.epsilon);
  Sums<kWidth> sum, product;
  for_runs<kWidth>(work.shape, block, [&](int64_t first, int64_t count) {
    V<kWidth> s = V<kWidth>{}, p = V<kWidth>{};
    for (int64_t i = first; i < first + count * kWidth; i += kWidth) {
      const V<kWidth> x = load<V<kWidth>>(work.x + i);
      const V<kWidth> g =
          gradient_of<kWidth, kMask>(work, affine, i, load<V<kWidth>>(work.y_gradient + i), x);
      if (work.residual_gradient) store(g, work.residual_gradient + i);
      s += g;
      p += g * (x - affine.mean);
    }
    sum.add(s);
    product.add(p);
  });
  for (int c = 0; c < kWidth; ++c) {
    const double deviation =
        std::sqrt(static_cast<double>(work.statistics.variance[static_cast<size_t>(c0 + c)]) +
                  static_cast<double>(work.epsilon));
    sum_g[c] = static_cast<float>(sum.values[c]);
    sum_g_xhat[c] = static_cast<float>(product.values[c] / deviation);
  }
}

// x gradient = γ/σ (g - mean(g) - x̂ mean(g x̂)) = a (g - c) + b (x - mean), per channel.
template <int kWidth, Mask kMask>
inline void backward_apply(const BatchNormBackward& work, int64_t block, const float* sum_g,
                           const float* sum_g_xhat, double values) {
  const int64_t c0 = block * kWidth;
  const float* mean = work.statistics.mean.data() + c0;
  const float* variance = work.statistics.variance.data() + c0;
  const Affine<kWidth> affine =
      affine_of<kWidth>(mean, variance, work.gamma + c0, work.beta + c0, work.epsilon);
  V<kWidth> a, b, c;
  for (int i = 0; i < kWidth; ++i) {
    const double inverse =
        1.0 / std::sqrt(static_cast<double>(variance[i]) + static_cast<double>(work.epsilon));
    const double scale = static_cast<double>(work.gamma[c0 + i]) * inverse;
    const double slope = static_cast<double>(sum_g_xhat[i]) / values * inverse;
    a[i] = static_cast<float>(scale);
    b[i] = static_cast<float>(-scale * slope);
    c[i] = static_cast<float>(static_cast<double>(sum_g[i]) / values);
  }
  for_runs<kWidth>(work.shape, block, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count * kWidth; i += kWidth) {
      const V<kWidth> x = load<V<kWidth>>(work.x + i);
      // What went to the residual has been through the ReLU already.
      const V<kWidth> g = work.residual_gradient
                              ? load<V<kWidth>>(work.residual_gradient + i)
                              : gradient_of<kWidth, kMask>(work, affine, i,
                                                           load<V<kWidth>>(work.y_gradient + i), x);
      store(a * (g - c) + b * (x - affine.mean), work.x_gradient + i);
    }
  });
}

template <int kWidth>
void backward_sums_any(const BatchNormBackward& work, int64_t block, float* sum_g,
                       float* sum_g_xhat) {
  if (!work.relu)
    backward_sums<kWidth, Mask::none>(work, block, sum_g, sum_g_xhat);
  else if (work.residual_gradient)
    backward_sums<kWidth, Mask::from_y>(work, block, sum_g, sum_g_xhat);
  else
    backward_sums<kWidth, Mask::from_x>(work, block, sum_g, sum_g_xhat);
}

template <int kWidth>
void backward_apply_any(const BatchNormBackward& work, int64_t block, const float* sum_g,
                        const float* sum_g_xhat, double values) {
  if (!work.relu)
    backward_apply<kWidth, Mask::none>(work, block, sum_g, sum_g_xhat, values);
  else if (work.residual_gradient)
    backward_apply<kWidth, Mask::from_y>(work, block, sum_g, sum_g_xhat, values);
  else
    backward_apply<kWidth, Mask::from_x>(work, block, sum_g, sum_g_xhat, values);
}

void Statistics(const ImageShape& shape, const float* x, int64_t block, float* mean,
                float* variance) {
  with_width(shape.block,
             [&](auto width) { statistics<width()>(shape, x, block, mean, variance); });
}

void Apply(const ImageShape& shape, const float* x, int64_t block, const float* mean,
           const float* variance, const float* gamma, const float* beta, float epsilon,
           const float* residual, bool relu, float* y) {
  with_width(shape.block, [&](auto width) {
    apply_any<width()>(shape, x, block, mean, variance, gamma, beta, epsilon, residual, relu, y);
  });
}

void BackwardSums(const BatchNormBackward& work, int64_t block, float* sum_g, float* sum_g_xhat) {
  with_width(work.shape.block,
             [&](auto width) { backward_sums_any<width()>(work, block, sum_g, sum_g_xhat); });
}

void BackwardApply(const BatchNormBackward& work, int64_t block, const float* sum_g,
                   const float* sum_g_xhat, double values) {
  with_width(work.shape.block, [&](auto width) {
    backward_apply_any<width()>(work, block, sum_g, sum_g_xhat, values);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(Statistics);
HWY_EXPORT(Apply);
HWY_EXPORT(BackwardSums);
HWY_EXPORT(BackwardApply);

namespace {

ChannelStatistics statistics_for(const ImageShape& shape) {
  const auto channels = static_cast<size_t>(shape.channels);
  return {std::vector<float>(channels), std::vector<float>(channels)};
}

BatchNormSums sums_for(const ImageShape& shape) {
  const auto channels = static_cast<size_t>(shape.channels);
  return {std::vector<float>(channels), std::vector<float>(channels)};
}

}  // namespace

ChannelStatistics batch_norm_statistics(const ImageShape& shape, const float* x) {
  ChannelStatistics statistics = statistics_for(shape);
  const auto statistics_of = HWY_DYNAMIC_DISPATCH(Statistics);
#pragma omp parallel for
  for (int64_t block = 0; block < shape.blocks(); ++block)
    statistics_of(shape, x, block, statistics.mean.data() + block * shape.block,
                  statistics.variance.data() + block * shape.block);
  return statistics;
}

void batch_norm_apply(const ImageShape& shape, const float* x, const ChannelStatistics& statistics,
                      const float* gamma, const float* beta, float epsilon,
                      const BatchNormTail& tail, float* y) {
  const auto apply = HWY_DYNAMIC_DISPATCH(Apply);
#pragma omp parallel for
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    const int64_t c = block * shape.block;
    apply(shape, x, block, statistics.mean.data() + c, statistics.variance.data() + c, gamma + c,
          beta + c, epsilon, tail.residual, tail.relu, y);
  }
}

ChannelStatistics batch_norm_forward(const ImageShape& shape, const float* x, const float* gamma,
                                     const float* beta, float epsilon, const BatchNormTail& tail,
                                     float* y) {
  ChannelStatistics statistics = statistics_for(shape);
  const auto statistics_of = HWY_DYNAMIC_DISPATCH(Statistics);
  const auto apply = HWY_DYNAMIC_DISPATCH(Apply);
#pragma omp parallel for
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    const int64_t c = block * shape.block;
    float *mean = statistics.mean.data() + c, *variance = statistics.variance.data() + c;
    statistics_of(shape, x, block, mean, variance);
    apply(shape, x, block, mean, variance, gamma + c, beta + c, epsilon, tail.residual, tail.relu,
          y);
  }
  return statistics;
}

BatchNormSums batch_norm_backward(const BatchNormBackward& work) {
  BatchNormSums sums = sums_for(work.shape);
  const auto values = static_cast<double>(work.shape.batch * work.shape.pixels());
  const auto backward_sums = HWY_DYNAMIC_DISPATCH(BackwardSums);
  const auto backward_apply = HWY_DYNAMIC_DISPATCH(BackwardApply);
#pragma omp parallel for
  for (int64_t block = 0; block < work.shape.blocks(); ++block) {
    float *g = sums.g.data() + block * work.shape.block,
          *g_xhat = sums.g_xhat.data() + block * work.shape.block;
    backward_sums(work, block, g, g_xhat);
    backward_apply(work, block, g, g_xhat, values);
  }
  return sums;
}

BatchNormSums batch_norm_backward_sums(const BatchNormBackward& work) {
  BatchNormSums sums = sums_for(work.shape);
  const auto backward_sums = HWY_DYNAMIC_DISPATCH(BackwardSums);
#pragma omp parallel for
  for (int64_t block = 0; block < work.shape.blocks(); ++block)
    backward_sums(work, block, sums.g.data() + block * work.shape.block,
                  sums.g_xhat.data() + block * work.shape.block);
  return sums;
}

void batch_norm_backward_apply(const BatchNormBackward& work, const BatchNormSums& sums,
                               double values_per_channel) {
  const auto backward_apply = HWY_DYNAMIC_DISPATCH(BackwardApply);
#pragma omp parallel for
  for (int64_t block = 0; block < work.shape.blocks(); ++block)
    backward_apply(work, block, sums.g.data() + block * work.shape.block,
                   sums.g_xhat.data() + block * work.shape.block, values_per_channel);
}

}  // namespace renkei::compute
#endif
