#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/vector-inl.h"
#include "compute/winograd_kernels.h"
#include "compute/winograd_transforms-inl.h"

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

// How many rows of a product of matrices are summed at once: with two vectors of a panel each, they
// fill the registers but for a few, and are enough to hide the latency of a multiplication.
constexpr int kRowsOf8 = 6, kRowsOf16 = 14;
// Input channels of a gradient; these divide a block.
constexpr int kGradientRowsOf8 = 4, kGradientRowsOf16 = 8;

// Reads a patch of `size` × `size` pixels; outside of the image is zero.
template <int kSize, int kWidth>
inline void read_patch(const float* image, int64_t height, int64_t width, int64_t y, int64_t x,
                       V<kWidth>* patch) {
  const bool inside = y >= 0 && x >= 0 && y + kSize <= height && x + kSize <= width;
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      const bool there = inside || (y + i >= 0 && y + i < height && x + j >= 0 && x + j < width);
      patch[i * kSize + j] =
          there ? load<V<kWidth>>(image + ((y + i) * width + x + j) * kWidth) : V<kWidth>{};
    }
}

template <int kWidth>
void transform_input(const Tiling& tiling, const float* input, int64_t tile, int64_t block,
                     float* to, int64_t point_step) {
  const Tiling::Place place = tiling.place(tile);
  const float* image =
      input + (place.image * (tiling.in / kWidth) + block) * tiling.height * tiling.width * kWidth;
  V<kWidth> patch[kPoints];
  read_patch<kPatch, kWidth>(image, tiling.height, tiling.width, place.y - tiling.padding,
                             place.x - tiling.padding, patch);
  V<kWidth> half[kPoints];
  for (int j = 0; j < kPatch; ++j) input_transform(patch + j, half + j, kPatch);
  for (int i = 0; i < kPatch; ++i) input_transform(half + i * kPatch, patch + i * kPatch, 1);
  for (int64_t p = 0; p < kPoints; ++p) store(patch[p], to + p * point_step);
}

template <int kWidth>
void transform_gradient(const Tiling& tiling, const float* gradient, int64_t tile, int64_t block,
                        float* to, int64_t point_step) {
  const Tiling::Place place = tiling.place(tile);
  const float* image = gradient + (place.image * (tiling.out / kWidth) + block) *
                                      tiling.out_height * tiling.out_width * kWidth;
  V<kWidth> patch[kTile * kTile];
  read_patch<kTile, kWidth>(image, tiling.out_height, tiling.out_width, place.y, place.x, patch);
  V<kWidth> half[kPatch * kTile], points[kPoints];
  for (int j = 0; j < kTile; ++j) gradient_transform(patch + j, half + j, kTile, kTile);
  for (int i = 0; i < kPatch; ++i) gradient_transform(half + i * kTile, points + i * kPatch, 1, 1);
  for (int64_t p = 0; p < kPoints; ++p) store(points[p], to + p * point_step);
}

template <int kWidth>
void transform_output(const Tiling& tiling, const float* from, int64_t point_step, int64_t tile,
                      int64_t block, const float* bias, bool relu, float* output) {
  V<kWidth> points[kPoints], half[kTile * kPatch], result[kTile * kTile];
  for (int64_t p = 0; p < kPoints; ++p) points[p] = load<V<kWidth>>(from + p * point_step);
  for (int j = 0; j < kPatch; ++j) output_transform(points + j, half + j, kPatch, kPatch);
  for (int i = 0; i < kTile; ++i) output_transform(half + i * kPatch, result + i * kTile, 1, 1);

  const Tiling::Place place = tiling.place(tile);
  float* image = output + (place.image * (tiling.out / kWidth) + block) * tiling.out_height *
                              tiling.out_width * kWidth;
  const V<kWidth> offset = bias ? load<V<kWidth>>(bias + block * kWidth) : V<kWidth>{};
  const int64_t rows = std::min(kTile, tiling.out_height - place.y);
  const int64_t columns = std::min(kTile, tiling.out_width - place.x);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      V<kWidth> value = result[i * kTile + j] + offset;
      if (relu) value = positive_part(value);
      store(value, image + ((place.y + i) * tiling.out_width + place.x + j) * kWidth);
    }
}

template <int kWidth>
void transform_filters(const Tiling& tiling, const float* weights, int64_t filter_step, bool turned,
                       float* to, int64_t point_step) {
  for (int64_t part = 0; part < tiling.panel; part += kWidth) {
    V<kWidth> filters[9];
    for (int k = 0; k < 9; ++k)
      for (int c = 0; c < kWidth; ++c)
        filters[k][c] = weights[(part + c) * filter_step + (turned ? 8 - k : k)];
    V<kWidth> half[kPatch * 3], points[kPoints];
    for (int j = 0; j < 3; ++j) filter_transform(filters + j, half + j, 3, 3);
    for (int i = 0; i < kPatch; ++i) filter_transform(half + i * 3, points + i * kPatch, 1, 1);
    for (int64_t p = 0; p < kPoints; ++p) store(points[p], to + part + p * point_step);
  }
}

template <int kWidth>
void transform_filter_gradients(const Tiling& tiling, const float* from, int64_t point_step,
                                bool add, float* gradients, int64_t filter_step) {
  for (int64_t part = 0; part < tiling.panel; part += kWidth) {
    V<kWidth> points[kPoints], half[3 * kPatch], filters[9];
    for (int64_t p = 0; p < kPoints; ++p) points[p] = load<V<kWidth>>(from + part + p * point_step);
    for (int j = 0; j < kPatch; ++j)
      filter_gradient_transform(points + j, half + j, kPatch, kPatch);
    for (int i = 0; i < 3; ++i) filter_gradient_transform(half + i * kPatch, filters + i * 3, 1, 1);
    for (int c = 0; c < kWidth; ++c) {
      float* filter = gradients + (part + c) * filter_step;
      for (int k = 0; k < 9; ++k) filter[k] = (add ? filter[k] : 0) + filters[k][c];
    }
  }
}

// kRows × panel values of a product of matrices: result[r] = Σ_k a(r, k) b[k][panel].
// a(r, k) is a[r * row_step + k * depth_step]; a panel has kVectors vectors.
template <int kWidth, int kVectors, int kRows>
void multiply(const float* a, int64_t row_step, int64_t depth_step, const float* b, int64_t depth,
              bool add, float* result) {
  constexpr int64_t kPanel = kWidth * kVectors;
  V<kWidth> sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = add ? load<V<kWidth>>(result + r * kPanel + v * kWidth) : V<kWidth>{};
  for (int64_t k = 0; k < depth; ++k, b += kPanel, a += depth_step) {
    V<kWidth> values[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) values[v] = load<V<kWidth>>(b + v * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = all<V<kWidth>>(a[r * row_step]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += value * values[v];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) store(sum[r][v], result + r * kPanel + v * kWidth);
}

using Multiply = void (*)(const float*, int64_t, int64_t, const float*, int64_t, bool, float*);

// multiply() for 1, 2, … rows.
template <int kWidth, int kVectors, int... kRows>
constexpr std::array<Multiply, sizeof...(kRows)> multiply_rows(
    std::integer_sequence<int, kRows...>) {
  return {&multiply<kWidth, kVectors, kRows + 1>...};
}

// Few more tiles than rows are not one full step and one that is nearly empty, but two of a size. A
// panel of U that does not fit into the first cache is taken in parts.
template <int kWidth, int kVectors>
void multiply_tiles(const Tiling& tiling, const float* v, const float* u, int64_t tiles, float* m) {
  constexpr int kMost = kWidth == 16 ? kRowsOf16 : kRowsOf8;
  constexpr int64_t kDepth = 256;
  static constexpr auto kMultiply =
      multiply_rows<kWidth, kVectors>(std::make_integer_sequence<int, kMost>());
  const int64_t steps = (tiles + kMost - 1) / kMost;
  for (int64_t c = 0; c < tiling.in; c += kDepth)
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t first = tiles * step / steps, rows = tiles * (step + 1) / steps - first;
      kMultiply[static_cast<size_t>(rows - 1)](
          v + first * tiling.in + c, tiling.in, 1, u + c * tiling.panel,
          std::min(kDepth, tiling.in - c), c > 0, m + first * tiling.panel);
    }
}

template <int kWidth, int kVectors>
void multiply_gradients(const Tiling& tiling, const float* v, const float* w, int64_t tiles,
                        bool add, float* du) {
  constexpr int kRows = kWidth == 16 ? kGradientRowsOf16 : kGradientRowsOf8;
  for (int64_t c = 0; c < tiling.in; c += kRows)
    multiply<kWidth, kVectors, kRows>(v + c / kWidth * tiles * kWidth + c % kWidth, 1, kWidth, w,
                                      tiles, add, du + c * tiling.panel);
}

void TransformInput(const Tiling& tiling, const float* input, int64_t tile, int64_t block,
                    float* to, int64_t point_step) {
  with_width(tiling.block, [&](auto width) {
    transform_input<width()>(tiling, input, tile, block, to, point_step);
  });
}

void TransformGradient(const Tiling& tiling, const float* gradient, int64_t tile, int64_t block,
                       float* to, int64_t point_step) {
  with_width(tiling.block, [&](auto width) {
    transform_gradient<width()>(tiling, gradient, tile, block, to, point_step);
  });
}

void TransformOutput(const Tiling& tiling, const float* from, int64_t point_step, int64_t tile,
                     int64_t block, const float* bias, bool relu, float* output) {
  with_width(tiling.block, [&](auto width) {
    transform_output<width()>(tiling, from, point_step, tile, block, bias, relu, output);
  });
}

void TransformFilters(const Tiling& tiling, const float* weights, int64_t filter_step, bool turned,
                      float* to, int64_t point_step) {
  with_width(tiling.block, [&](auto width) {
    transform_filters<width()>(tiling, weights, filter_step, turned, to, point_step);
  });
}

void TransformFilterGradients(const Tiling& tiling, const float* from, int64_t point_step, bool add,
                              float* gradients, int64_t filter_step) {
  with_width(tiling.block, [&](auto width) {
    transform_filter_gradients<width()>(tiling, from, point_step, add, gradients, filter_step);
  });
}

void MultiplyTiles(const Tiling& tiling, const float* v, const float* u, int64_t tiles, float* m) {
  with_width(tiling.block, [&](auto width) {
    if (tiling.panel == width())
      multiply_tiles<width(), 1>(tiling, v, u, tiles, m);
    else
      multiply_tiles<width(), 2>(tiling, v, u, tiles, m);
  });
}

void MultiplyGradients(const Tiling& tiling, const float* v, const float* w, int64_t tiles,
                       bool add, float* du) {
  with_width(tiling.block, [&](auto width) {
    if (tiling.panel == width())
      multiply_gradients<width(), 1>(tiling, v, w, tiles, add, du);
    else
      multiply_gradients<width(), 2>(tiling, v, w, tiles, add, du);
  });
}

}  // namespace renkei::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renkei::compute {

HWY_EXPORT(TransformInput);
HWY_EXPORT(TransformGradient);
HWY_EXPORT(TransformOutput);
HWY_EXPORT(TransformFilters);
HWY_EXPORT(TransformFilterGradients);
HWY_EXPORT(MultiplyTiles);
HWY_EXPORT(MultiplyGradients);

const WinogradKernels& winograd_kernels() {
  // A pointer that is taken before Highway has looked at the processor would look at it in each
  // call.
  if (!hwy::GetChosenTarget().IsInitialized())
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  static const WinogradKernels kernels{
      .transform_input = HWY_DYNAMIC_DISPATCH(TransformInput),
      .transform_gradient = HWY_DYNAMIC_DISPATCH(TransformGradient),
      .transform_output = HWY_DYNAMIC_DISPATCH(TransformOutput),
      .transform_filters = HWY_DYNAMIC_DISPATCH(TransformFilters),
      .transform_filter_gradients = HWY_DYNAMIC_DISPATCH(TransformFilterGradients),
      .multiply_tiles = HWY_DYNAMIC_DISPATCH(MultiplyTiles),
      .multiply_gradients = HWY_DYNAMIC_DISPATCH(MultiplyGradients)};
  return kernels;
}

}  // namespace renkei::compute
#endif
