#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/winograd.cpp"
#include <hwy/foreach_target.h>
// Highway wants its own headers here.
#include <hwy/highway.h>

#include "compute/scratch.h"
#include "compute/vector8-inl.h"
#include "compute/winograd.h"

#include <algorithm>

#ifndef RENKEI_COMPUTE_WINOGRAD_TYPES
#define RENKEI_COMPUTE_WINOGRAD_TYPES
namespace renkei::compute {

inline constexpr int64_t kTile = 4;          // output pixels of a tile, in each direction
inline constexpr int64_t kPatch = 6;         // input pixels
inline constexpr int64_t kPoints = 36;       // values of a transformed tile
inline constexpr int64_t kPanel = 16;        // output channels of a panel of U
inline constexpr int64_t kRows = 6;          // tiles that a matrix product takes at once
inline constexpr int64_t kGradientRows = 4;  // input channels that a weight gradient takes at once

// One convolution as the kernels see it: tiles are numbered over the whole batch.
struct Tiling {
  int64_t batch, in, out, height, width, out_height, out_width, padding;
  int64_t tiles_down, tiles_across;

  int64_t per_image() const { return tiles_down * tiles_across; }
  int64_t tiles() const { return batch * per_image(); }

  struct Place {
    int64_t image, y, x;  // of the first output pixel
  };
  Place place(int64_t tile) const {
    const int64_t in_image = tile % per_image();
    return {tile / per_image(), in_image / tiles_across * kTile, in_image % tiles_across * kTile};
  }
};

}  // namespace renkei::compute
#endif

HWY_BEFORE_NAMESPACE();
namespace renkei::compute::HWY_NAMESPACE {

// The one-dimensional transforms, from `in` to `out`, `step` values apart.

inline void input_transform(const V8* in, V8* out, int step) {  // Bᵀ
  const V8 d0 = in[0], d1 = in[step], d2 = in[2 * step], d3 = in[3 * step], d4 = in[4 * step],
           d5 = in[5 * step];
  const V8 even = d4 - 4.0f * d2, odd = d3 - 4.0f * d1;
  const V8 even2 = d4 - d2, odd2 = 2.0f * (d3 - d1);
  out[0] = 4.0f * d0 - 5.0f * d2 + d4;
  out[step] = even + odd;
  out[2 * step] = even - odd;
  out[3 * step] = even2 + odd2;
  out[4 * step] = even2 - odd2;
  out[5 * step] = 4.0f * d1 - 5.0f * d3 + d5;
}

inline void output_transform(const V8* in, V8* out, int in_step, int out_step) {  // Aᵀ
  const V8 m0 = in[0], m1 = in[in_step], m2 = in[2 * in_step], m3 = in[3 * in_step],
           m4 = in[4 * in_step], m5 = in[5 * in_step];
  const V8 sum = m1 + m2, difference = m1 - m2, sum2 = m3 + m4, difference2 = m3 - m4;
  out[0] = m0 + sum + sum2;
  out[out_step] = difference + 2.0f * difference2;
  out[2 * out_step] = sum + 4.0f * sum2;
  out[3 * out_step] = difference + 8.0f * difference2 + m5;
}

inline void gradient_transform(const V8* in, V8* out, int in_step, int out_step) {  // A
  const V8 y0 = in[0], y1 = in[in_step], y2 = in[2 * in_step], y3 = in[3 * in_step];
  const V8 even = y0 + y2, odd = y1 + y3, even2 = y0 + 4.0f * y2, odd2 = 2.0f * y1 + 8.0f * y3;
  out[0] = y0;
  out[out_step] = even + odd;
  out[2 * out_step] = even - odd;
  out[3 * out_step] = even2 + odd2;
  out[4 * out_step] = even2 - odd2;
  out[5 * out_step] = y3;
}

inline void filter_transform(const V8* in, V8* out, int in_step, int out_step) {  // G
  const V8 g0 = in[0], g1 = in[in_step], g2 = in[2 * in_step];
  const V8 sixth = (g0 + g2) * (-1.0f / 6), mixed = g0 * (1.0f / 24) + g2 * (1.0f / 6);
  const V8 odd = g1 * (1.0f / 6), odd2 = g1 * (1.0f / 12);
  out[0] = g0 * 0.25f;
  out[out_step] = sixth - odd;
  out[2 * out_step] = sixth + odd;
  out[3 * out_step] = mixed + odd2;
  out[4 * out_step] = mixed - odd2;
  out[5 * out_step] = g2;
}

inline void filter_gradient_transform(const V8* in, V8* out, int in_step, int out_step) {  // Gᵀ
  const V8 u0 = in[0], u1 = in[in_step], u2 = in[2 * in_step], u3 = in[3 * in_step],
           u4 = in[4 * in_step], u5 = in[5 * in_step];
  const V8 sum = u1 + u2, difference = u2 - u1, sum2 = u3 + u4, difference2 = u3 - u4;
  out[0] = u0 * 0.25f - sum * (1.0f / 6) + sum2 * (1.0f / 24);
  out[out_step] = difference * (1.0f / 6) + difference2 * (1.0f / 12);
  out[2 * out_step] = (sum2 - sum) * (1.0f / 6) + u5;
}

// Reads a patch of `size` × `size` pixels; outside of the image is zero.
template <int kSize>
inline void read_patch(const float* image, int64_t height, int64_t width, int64_t y, int64_t x,
                       V8* patch) {
  const bool inside = y >= 0 && x >= 0 && y + kSize <= height && x + kSize <= width;
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      const bool there = inside || (y + i >= 0 && y + i < height && x + j >= 0 && x + j < width);
      patch[i * kSize + j] = there ? load(image + ((y + i) * width + x + j) * kBlock) : all(0);
    }
}

// V of one tile and one block of input channels, to 36 places `point_step` values apart.
void TransformInput(const Tiling& tiling, const float* input, int64_t tile, int64_t block,
                    float* to, int64_t point_step) {
  const Tiling::Place place = tiling.place(tile);
  const float* image =
      input + (place.image * (tiling.in / kBlock) + block) * tiling.height * tiling.width * kBlock;
  V8 patch[kPoints];
  read_patch<kPatch>(image, tiling.height, tiling.width, place.y - tiling.padding,
                     place.x - tiling.padding, patch);
  V8 half[kPoints];
  for (int j = 0; j < kPatch; ++j) input_transform(patch + j, half + j, kPatch);
  for (int i = 0; i < kPatch; ++i) input_transform(half + i * kPatch, patch + i * kPatch, 1);
  for (int64_t p = 0; p < kPoints; ++p) store(patch[p], to + p * point_step);
}

// A dY Aᵀ of one tile and one block of output channels.
void TransformGradient(const Tiling& tiling, const float* gradient, int64_t tile, int64_t block,
                       float* to, int64_t point_step) {
  const Tiling::Place place = tiling.place(tile);
  const float* image = gradient + (place.image * (tiling.out / kBlock) + block) *
                                      tiling.out_height * tiling.out_width * kBlock;
  V8 patch[kTile * kTile];
  read_patch<kTile>(image, tiling.out_height, tiling.out_width, place.y, place.x, patch);
  V8 half[kPatch * kTile], points[kPoints];
  for (int j = 0; j < kTile; ++j) gradient_transform(patch + j, half + j, kTile, kTile);
  for (int i = 0; i < kPatch; ++i) gradient_transform(half + i * kTile, points + i * kPatch, 1, 1);
  for (int64_t p = 0; p < kPoints; ++p) store(points[p], to + p * point_step);
}

// Y of one tile and one block of output channels, with bias and ReLU.
void TransformOutput(const Tiling& tiling, const float* from, int64_t point_step, int64_t tile,
                     int64_t block, const float* bias, bool relu, float* output) {
  V8 points[kPoints], half[kTile * kPatch], result[kTile * kTile];
  for (int64_t p = 0; p < kPoints; ++p) points[p] = load(from + p * point_step);
  for (int j = 0; j < kPatch; ++j) output_transform(points + j, half + j, kPatch, kPatch);
  for (int i = 0; i < kTile; ++i) output_transform(half + i * kPatch, result + i * kTile, 1, 1);

  const Tiling::Place place = tiling.place(tile);
  float* image = output + (place.image * (tiling.out / kBlock) + block) * tiling.out_height *
                              tiling.out_width * kBlock;
  const V8 offset = bias ? load(bias + block * kBlock) : all(0);
  const int64_t rows = std::min(kTile, tiling.out_height - place.y);
  const int64_t columns = std::min(kTile, tiling.out_width - place.x);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      V8 value = result[i * kTile + j] + offset;
      if (relu) value = positive_part(value);
      store(value, image + ((place.y + i) * tiling.out_width + place.x + j) * kBlock);
    }
}

// U of 16 filters with the same input channel. `filter(c)` is where filter c begins; `turned` means
// by 180 degrees.
void TransformFilters(const float* weights, int64_t filter_step, bool turned, float* to,
                      int64_t point_step) {
  for (int64_t half_panel = 0; half_panel < kPanel; half_panel += kBlock) {
    V8 filters[9];
    for (int k = 0; k < 9; ++k)
      for (int c = 0; c < kBlock; ++c)
        filters[k][c] = weights[(half_panel + c) * filter_step + (turned ? 8 - k : k)];
    V8 half[kPatch * 3], points[kPoints];
    for (int j = 0; j < 3; ++j) filter_transform(filters + j, half + j, 3, 3);
    for (int i = 0; i < kPatch; ++i) filter_transform(half + i * 3, points + i * kPatch, 1, 1);
    for (int64_t p = 0; p < kPoints; ++p) store(points[p], to + half_panel + p * point_step);
  }
}

// The gradient of 16 filters with the same input channel.
void TransformFilterGradients(const float* from, int64_t point_step, bool add, float* gradients,
                              int64_t filter_step) {
  for (int64_t half_panel = 0; half_panel < kPanel; half_panel += kBlock) {
    V8 points[kPoints], half[3 * kPatch], filters[9];
    for (int64_t p = 0; p < kPoints; ++p) points[p] = load(from + half_panel + p * point_step);
    for (int j = 0; j < kPatch; ++j)
      filter_gradient_transform(points + j, half + j, kPatch, kPatch);
    for (int i = 0; i < 3; ++i) filter_gradient_transform(half + i * kPatch, filters + i * 3, 1, 1);
    for (int c = 0; c < kBlock; ++c) {
      float* filter = gradients + (half_panel + c) * filter_step;
      for (int k = 0; k < 9; ++k) filter[k] = (add ? filter[k] : 0) + filters[k][c];
    }
  }
}

// rows × 16 values of a product of matrices: result[r] = Σ_k a(r, k) b[k][0…15].
// a(r, k) is a[r * row_step + k * depth_step].
template <int kCount>
inline void multiply(const float* a, int64_t row_step, int64_t depth_step, const float* b,
                     int64_t depth, bool add, float* result, int64_t result_step) {
  V8 sum[kCount][2];
  for (int r = 0; r < kCount; ++r)
    for (int h = 0; h < 2; ++h)
      sum[r][h] = add ? load(result + r * result_step + h * kBlock) : all(0);
  for (int64_t k = 0; k < depth; ++k, b += kPanel, a += depth_step) {
    const V8 b0 = load(b), b1 = load(b + kBlock);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      const V8 value = all(a[r * row_step]);
      sum[r][0] += value * b0;
      sum[r][1] += value * b1;
    }
  }
  for (int r = 0; r < kCount; ++r)
    for (int h = 0; h < 2; ++h) store(sum[r][h], result + r * result_step + h * kBlock);
}

// M of one point and one panel of output channels: V is [tile][in], the panel of U is [in][16], M
// is [tile][16].
void MultiplyTiles(const float* v, const float* u, int64_t tiles, int64_t in, float* m) {
  int64_t t = 0;
  for (; t + kRows <= tiles; t += kRows)
    multiply<kRows>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
  switch (tiles - t) {
    case 5:
      return multiply<5>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
    case 4:
      return multiply<4>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
    case 3:
      return multiply<3>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
    case 2:
      return multiply<2>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
    case 1:
      return multiply<1>(v + t * in, in, 1, u, in, false, m + t * kPanel, kPanel);
    default:
      return;
  }
}

// dU of one point and one panel of output channels: V is [in / 8][tile][8], the panel of the
// gradient is [tile][16], dU is [in][16].
void MultiplyGradients(const float* v, const float* w, int64_t tiles, int64_t in, bool add,
                       float* du) {
  for (int64_t c = 0; c < in; c += kGradientRows)
    multiply<kGradientRows>(v + c / kBlock * tiles * kBlock + c % kBlock, 1, kBlock, w, tiles, add,
                            du + c * kPanel, kPanel);
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

namespace {

Tiling tiling_of(const ConvolutionShape& s) {
  return {.batch = s.batch,
          .in = s.in_channels,
          .out = s.out_channels,
          .height = s.height,
          .width = s.width,
          .out_height = s.out_height(),
          .out_width = s.out_width(),
          .padding = s.padding_height,
          .tiles_down = (s.out_height() + kTile - 1) / kTile,
          .tiles_across = (s.out_width() + kTile - 1) / kTile};
}

// How many tiles are taken at once: what is computed for them should stay in the cache, but
// must not be small beside the filters, which are read again for every group of tiles.
int64_t tiles_at_once(const Tiling& tiling) {
  constexpr int64_t kCacheFloats = int64_t{6 << 20} / 4;
  const int64_t filters = kPoints * tiling.in * tiling.out;
  const int64_t per_tile = kPoints * (tiling.in + tiling.out);
  const int64_t tiles = std::max(kCacheFloats, 2 * filters) / per_tile;
  return std::clamp<int64_t>(tiles / kRows * kRows, 8 * kRows, tiling.tiles());
}

enum class Filters { as_they_are, turned };

// U as [out / 16][point][in][16]. Turned filters change the roles of input and output channels.
void transform_filters(const Tiling& tiling, const float* weights, Filters filters, float* u) {
  const bool turned = filters == Filters::turned;
  const int64_t panels = tiling.out / kPanel;
  const auto transform_panel = HWY_DYNAMIC_DISPATCH(TransformFilters);
#pragma omp parallel for
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t c = 0; c < tiling.in; ++c) {
      // The weights are [out][in][9] of the forward direction.
      const float* first = turned ? weights + (c * tiling.out + panel * kPanel) * 9
                                  : weights + (panel * kPanel * tiling.in + c) * 9;
      transform_panel(first, turned ? 9 : tiling.in * 9, turned,
                      u + (panel * kPoints * tiling.in + c) * kPanel, tiling.in * kPanel);
    }
}

void convolve(const Tiling& tiling, const float* input, const float* weights, Filters filters,
              const float* bias, bool relu, float* output) {
  const int64_t group = tiles_at_once(tiling), panels = tiling.out / kPanel;
  float* u = scratch(static_cast<size_t>(kPoints * tiling.in * tiling.out), 1);
  float* v = scratch(static_cast<size_t>(kPoints * group * tiling.in), 2);
  float* m = scratch(static_cast<size_t>(kPoints * group * tiling.out), 3);
  transform_filters(tiling, weights, filters, u);
  const auto transform_input = HWY_DYNAMIC_DISPATCH(TransformInput);
  const auto multiply_tiles = HWY_DYNAMIC_DISPATCH(MultiplyTiles);
  const auto transform_output = HWY_DYNAMIC_DISPATCH(TransformOutput);
  for (int64_t first = 0; first < tiling.tiles(); first += group) {
    const int64_t tiles = std::min(group, tiling.tiles() - first);
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t)  // V as [point][tile][in]
      for (int64_t block = 0; block < tiling.in / kBlock; ++block)
        transform_input(tiling, input, first + t, block, v + t * tiling.in + block * kBlock,
                        tiles * tiling.in);
#pragma omp parallel for
    for (int64_t p = 0; p < kPoints; ++p)  // M as [panel][point][tile][16]
      for (int64_t panel = 0; panel < panels; ++panel)
        multiply_tiles(v + p * tiles * tiling.in, u + (panel * kPoints + p) * tiling.in * kPanel,
                       tiles, tiling.in, m + (panel * kPoints + p) * tiles * kPanel);
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t block = 0; block < tiling.out / kBlock; ++block)
        transform_output(tiling,
                         m + (block / 2 * kPoints * tiles + t) * kPanel + block % 2 * kBlock,
                         tiles * kPanel, first + t, block, bias, relu, output);
  }
}

}  // namespace

WinogradChoice winograd_choice(const ConvolutionShape& s) {
  const bool possible = s.kernel_height == 3 && s.kernel_width == 3 && s.stride_height == 1 &&
                        s.stride_width == 1 && s.dilation_height == 1 && s.dilation_width == 1 &&
                        s.groups == 1 && s.padding_height == s.padding_width &&
                        s.padding_height <= 2 && s.in_channels % kPanel == 0 &&
                        s.out_channels % kPanel == 0;
  if (!possible) return {};
  // With few tiles the transforms of the filters cost more than the products save.
  const int64_t tiles = tiling_of(s).tiles();
  return {.forward = tiles >= 32, .backward_input = tiles >= 32, .backward_weights = tiles >= 32};
}

void winograd_forward(const ConvolutionShape& shape, const float* input, const float* weights,
                      const float* bias, bool relu, float* output) {
  convolve(tiling_of(shape), input, weights, Filters::as_they_are, bias, relu, output);
}

void winograd_backward_input(const ConvolutionShape& shape, const float* output_gradient,
                             const float* weights, float* input_gradient) {
  const ConvolutionShape back{.batch = shape.batch,
                              .in_channels = shape.out_channels,
                              .height = shape.out_height(),
                              .width = shape.out_width(),
                              .out_channels = shape.in_channels,
                              .kernel_height = 3,
                              .kernel_width = 3,
                              .padding_height = 2 - shape.padding_height,
                              .padding_width = 2 - shape.padding_width};
  convolve(tiling_of(back), output_gradient, weights, Filters::turned, nullptr, false,
           input_gradient);
}

void winograd_backward_weights(const ConvolutionShape& shape, const float* input,
                               const float* output_gradient, Write write, float* weight_gradient) {
  const Tiling tiling = tiling_of(shape);
  const int64_t group = tiles_at_once(tiling), panels = tiling.out / kPanel;
  const int64_t in_blocks = tiling.in / kBlock;
  float* du = scratch(static_cast<size_t>(kPoints * tiling.in * tiling.out), 1);
  float* v = scratch(static_cast<size_t>(kPoints * group * tiling.in), 2);
  float* w = scratch(static_cast<size_t>(kPoints * group * tiling.out), 3);
  const auto transform_input = HWY_DYNAMIC_DISPATCH(TransformInput);
  const auto transform_gradient = HWY_DYNAMIC_DISPATCH(TransformGradient);
  const auto multiply_gradients = HWY_DYNAMIC_DISPATCH(MultiplyGradients);
  const auto transform_back = HWY_DYNAMIC_DISPATCH(TransformFilterGradients);
  for (int64_t first = 0; first < tiling.tiles(); first += group) {
    const int64_t tiles = std::min(group, tiling.tiles() - first);
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t) {
      for (int64_t block = 0; block < in_blocks; ++block)  // V as [point][in / 8][tile][8]
        transform_input(tiling, input, first + t, block, v + (block * tiles + t) * kBlock,
                        tiles * tiling.in);
      for (int64_t block = 0; block < tiling.out / kBlock; ++block)  // [panel][point][tile][16]
        transform_gradient(tiling, output_gradient, first + t, block,
                           w + (block / 2 * kPoints * tiles + t) * kPanel + block % 2 * kBlock,
                           tiles * kPanel);
    }
#pragma omp parallel for
    for (int64_t p = 0; p < kPoints; ++p)  // dU as [panel][point][in][16]
      for (int64_t panel = 0; panel < panels; ++panel)
        multiply_gradients(v + p * tiles * tiling.in, w + (panel * kPoints + p) * tiles * kPanel,
                           tiles, tiling.in, first > 0,
                           du + (panel * kPoints + p) * tiling.in * kPanel);
  }
#pragma omp parallel for
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t c = 0; c < tiling.in; ++c)
      transform_back(du + (panel * kPoints * tiling.in + c) * kPanel, tiling.in * kPanel,
                     write == Write::add, weight_gradient + (panel * kPanel * tiling.in + c) * 9,
                     tiling.in * 9);
}

}  // namespace renkei::compute
#endif
