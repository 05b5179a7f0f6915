#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/batch_norm.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/batch_norm.h"
#include "compute/vector8-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

struct D8 {
  double values[kBlock] = {};
  void add(V8 sums) {
    for (int c = 0; c < kBlock; ++c) values[c] += static_cast<double>(sums[c]);
  }
};

// Sums in single precision are only taken over so many values; above, in double.
constexpr int64_t kRun = 256;

// Calls work(first, count) for runs of pixels of a channel block: `first` is the offset of the
// run's first value.
template <typename Work>
inline void for_runs(const ImageShape& shape, int64_t block, Work work) {
  const int64_t blocks = shape.channels / kBlock, pixels = shape.pixels();
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t image = (n * blocks + block) * pixels * kBlock;
    for (int64_t p = 0; p < pixels; p += kRun) work(image + p * kBlock, std::min(kRun, pixels - p));
  }
}

void Statistics(const ImageShape& shape, const float* x, int64_t block, float* mean,
                float* variance) {
  // Sums of differences from some value of the channel: no cancellation where the mean is large.
  const V8 shift = load(x + block * shape.pixels() * kBlock);
  D8 sum, squares;
  for_runs(shape, block, [&](int64_t first, int64_t count) {
    V8 s0 = all(0), s1 = all(0), q0 = all(0), q1 = all(0);
    const float* from = x + first;
    int64_t i = 0;
    for (; i + 1 < count; i += 2, from += 2 * kBlock) {
      const V8 a = load(from) - shift, b = load(from + kBlock) - shift;
      s0 += a;
      s1 += b;
      q0 += a * a;
      q1 += b * b;
    }
    if (i < count) {
      const V8 a = load(from) - shift;
      s0 += a;
      q0 += a * a;
    }
    sum.add(s0 + s1);
    squares.add(q0 + q1);
  });
  const auto values = static_cast<double>(shape.batch * shape.pixels());
  for (int c = 0; c < kBlock; ++c) {
    const double difference = sum.values[c] / values;
    mean[c] = static_cast<float>(static_cast<double>(shift[c]) + difference);
    variance[c] =
        static_cast<float>(std::max(0.0, squares.values[c] / values - difference * difference));
  }
}

struct Affine {
  V8 scale, offset;  // y = x scale + offset
};

inline Affine affine_of(const float* mean, const float* variance, const float* gamma,
                        const float* beta, float epsilon) {
  Affine affine;
  for (int c = 0; c < kBlock; ++c) {
    const float scale = gamma[c] / std::sqrt(variance[c] + epsilon);
    affine.scale[c] = scale;
    affine.offset[c] = beta[c] - mean[c] * scale;
  }
  return affine;
}

template <bool kResidual, bool kRelu>
inline void apply(const ImageShape& shape, const float* x, int64_t block, const Affine& affine,
                  const float* residual, float* y) {
  for_runs(shape, block, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count * kBlock; i += kBlock) {
      V8 value = load(x + i) * affine.scale + affine.offset;
      if constexpr (kResidual) value += load(residual + i);
      if constexpr (kRelu) value = positive_part(value);
      store(value, y + i);
    }
  });
}

void Apply(const ImageShape& shape, const float* x, int64_t block, const float* mean,
           const float* variance, const float* gamma, const float* beta, float epsilon,
           const float* residual, bool relu, float* y) {
  const Affine affine = affine_of(mean, variance, gamma, beta, epsilon);
  if (residual && relu)
    apply<true, true>(shape, x, block, affine, residual, y);
  else if (residual)
    apply<true, false>(shape, x, block, affine, residual, y);
  else if (relu)
    apply<false, true>(shape, x, block, affine, residual, y);
  else
    apply<false, false>(shape, x, block, affine, residual, y);
}

// Where the sign of the output comes from: it is computed again unless a residual was added.
enum class Mask { none, from_x, from_y };

template <Mask kMask>
inline V8 through_relu(const BatchNormBackward& work, const Affine& affine, int64_t i, V8 gradient,
                       V8 x) {
  if constexpr (kMask == Mask::from_x)
    return where_positive(x * affine.scale + affine.offset, gradient);
  if constexpr (kMask == Mask::from_y) return where_positive(load(work.y + i), gradient);
  return gradient;
}

template <Mask kMask>
inline void backward_sums(const BatchNormBackward& work, int64_t block, float* sum_g,
                          float* sum_g_xhat) {
  const int64_t c0 = block * kBlock;
  const Affine affine =
      affine_of(work.statistics.mean.data() + c0, work.statistics.variance.data() + c0,
                work.gamma + c0, work.beta + c0, work.epsilon);
  const V8 mean = load(work.statistics.mean.data() + c0);
  D8 sum, product;
  for_runs(work.shape, block, [&](int64_t first, int64_t count) {
    V8 s = all(0), p = all(0);
    for (int64_t i = first; i < first + count * kBlock; i += kBlock) {
      const V8 x = load(work.x + i);
      const V8 g = through_relu<kMask>(work, affine, i, load(work.y_gradient + i), x);
      if (work.residual_gradient) store(g, work.residual_gradient + i);
      s += g;
      p += g * (x - mean);
    }
    sum.add(s);
    product.add(p);
  });
  for (int c = 0; c < kBlock; ++c) {
    const double deviation =
        std::sqrt(static_cast<double>(work.statistics.variance[static_cast<size_t>(c0 + c)]) +
                  static_cast<double>(work.epsilon));
    sum_g[c] = static_cast<float>(sum.values[c]);
    sum_g_xhat[c] = static_cast<float>(product.values[c] / deviation);
  }
}

// x gradient = γ/σ (g - mean(g) - x̂ mean(g x̂)) = a g + b x + c, per channel.
template <Mask kMask>
inline void backward_apply(const BatchNormBackward& work, int64_t block, const float* sum_g,
                           const float* sum_g_xhat, double values) {
  const int64_t c0 = block * kBlock;
  const float* mean = work.statistics.mean.data() + c0;
  const float* variance = work.statistics.variance.data() + c0;
  const Affine affine = affine_of(mean, variance, work.gamma + c0, work.beta + c0, work.epsilon);
  V8 a, b, c;
  for (int i = 0; i < kBlock; ++i) {
    const double inverse =
        1.0 / std::sqrt(static_cast<double>(variance[i]) + static_cast<double>(work.epsilon));
    const double scale = static_cast<double>(work.gamma[c0 + i]) * inverse;
    const double slope = static_cast<double>(sum_g_xhat[i]) / values * inverse;
    a[i] = static_cast<float>(scale);
    b[i] = static_cast<float>(-scale * slope);
    c[i] = static_cast<float>(
        scale * (slope * static_cast<double>(mean[i]) - static_cast<double>(sum_g[i]) / values));
  }
  for_runs(work.shape, block, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count * kBlock; i += kBlock) {
      const V8 x = load(work.x + i);
      // What went to the residual has been through the ReLU already.
      const V8 g = work.residual_gradient
                       ? load(work.residual_gradient + i)
                       : through_relu<kMask>(work, affine, i, load(work.y_gradient + i), x);
      store(a * g + (b * x + c), work.x_gradient + i);
    }
  });
}

void BackwardSums(const BatchNormBackward& work, int64_t block, float* sum_g, float* sum_g_xhat) {
  if (!work.relu)
    backward_sums<Mask::none>(work, block, sum_g, sum_g_xhat);
  else if (work.residual_gradient)
    backward_sums<Mask::from_y>(work, block, sum_g, sum_g_xhat);
  else
    backward_sums<Mask::from_x>(work, block, sum_g, sum_g_xhat);
}

void BackwardApply(const BatchNormBackward& work, int64_t block, const float* sum_g,
                   const float* sum_g_xhat, double values) {
  if (!work.relu)
    backward_apply<Mask::none>(work, block, sum_g, sum_g_xhat, values);
  else if (work.residual_gradient)
    backward_apply<Mask::from_y>(work, block, sum_g, sum_g_xhat, values);
  else
    backward_apply<Mask::from_x>(work, block, sum_g, sum_g_xhat, values);
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
  for (int64_t block = 0; block < shape.channels / kBlock; ++block)
    statistics_of(shape, x, block, statistics.mean.data() + block * kBlock,
                  statistics.variance.data() + block * kBlock);
  return statistics;
}

void batch_norm_apply(const ImageShape& shape, const float* x, const ChannelStatistics& statistics,
                      const float* gamma, const float* beta, float epsilon,
                      const BatchNormTail& tail, float* y) {
  const auto apply = HWY_DYNAMIC_DISPATCH(Apply);
#pragma omp parallel for
  for (int64_t block = 0; block < shape.channels / kBlock; ++block) {
    const int64_t c = block * kBlock;
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
  for (int64_t block = 0; block < shape.channels / kBlock; ++block) {
    const int64_t c = block * kBlock;
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
  for (int64_t block = 0; block < work.shape.channels / kBlock; ++block) {
    float *g = sums.g.data() + block * kBlock, *g_xhat = sums.g_xhat.data() + block * kBlock;
    backward_sums(work, block, g, g_xhat);
    backward_apply(work, block, g, g_xhat, values);
  }
  return sums;
}

BatchNormSums batch_norm_backward_sums(const BatchNormBackward& work) {
  BatchNormSums sums = sums_for(work.shape);
  const auto backward_sums = HWY_DYNAMIC_DISPATCH(BackwardSums);
#pragma omp parallel for
  for (int64_t block = 0; block < work.shape.channels / kBlock; ++block)
    backward_sums(work, block, sums.g.data() + block * kBlock, sums.g_xhat.data() + block * kBlock);
  return sums;
}

void batch_norm_backward_apply(const BatchNormBackward& work, const BatchNormSums& sums,
                               double values_per_channel) {
  const auto backward_apply = HWY_DYNAMIC_DISPATCH(BackwardApply);
#pragma omp parallel for
  for (int64_t block = 0; block < work.shape.channels / kBlock; ++block)
    backward_apply(work, block, sums.g.data() + block * kBlock, sums.g_xhat.data() + block * kBlock,
                   values_per_channel);
}

}  // namespace renkei::compute
#endif
