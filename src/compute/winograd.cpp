#include "compute/winograd.h"

#include <algorithm>

#include "compute/scratch.h"
#include "compute/winograd_kernels.h"

namespace renkei::compute {
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
          .tiles_across = (s.out_width() + kTile - 1) / kTile,
          .block = s.in_block,
          .panel = s.out_channels % (2 * s.in_block) == 0 ? 2 * s.in_block : s.in_block};
}

// How many tiles are taken at once: what is computed for them should stay in the cache, but
// must not be small beside the filters, which are read again for every group of tiles.
int64_t tiles_at_once(const Tiling& tiling) {
  constexpr int64_t kCacheFloats = int64_t{6 << 20} / 4, kFewest = 48;
  const int64_t filters = kPoints * tiling.in * tiling.out;
  const int64_t per_tile = kPoints * (tiling.in + tiling.out);
  const int64_t tiles = std::max(kCacheFloats, 2 * filters) / per_tile;
  return std::min(std::max(tiles, kFewest), tiling.tiles());
}

// Where the values of a point begin, in arrays of [panel][point][rows][panel's channels].
int64_t in_panel(const Tiling& tiling, int64_t panel, int64_t point, int64_t rows) {
  return (panel * kPoints + point) * rows * tiling.panel;
}

// The same for a row of a block of output channels at point 0.
int64_t in_block(const Tiling& tiling, int64_t block, int64_t rows, int64_t row) {
  const int64_t channel = block * tiling.block;
  return in_panel(tiling, channel / tiling.panel, 0, rows) + row * tiling.panel +
         channel % tiling.panel;
}

enum class Filters { as_they_are, turned };

// U as [panel][point][in][panel's channels]. Turned filters change the roles of input and output
// channels.
void transform_filters(const Tiling& tiling, const float* weights, Filters filters, float* u) {
  const bool turned = filters == Filters::turned;
  const WinogradKernels& kernels = winograd_kernels();
#pragma omp parallel for
  for (int64_t panel = 0; panel < tiling.panels(); ++panel)
    for (int64_t c = 0; c < tiling.in; ++c) {
      // The weights are [out][in][9] of the forward direction.
      const float* first = turned ? weights + (c * tiling.out + panel * tiling.panel) * 9
                                  : weights + (panel * tiling.panel * tiling.in + c) * 9;
      kernels.transform_filters(tiling, first, turned ? 9 : tiling.in * 9, turned,
                                u + in_panel(tiling, panel, 0, tiling.in) + c * tiling.panel,
                                tiling.in * tiling.panel);
    }
}

void convolve(const Tiling& tiling, const float* input, const float* weights, Filters filters,
              const float* bias, bool relu, float* output) {
  const int64_t group = tiles_at_once(tiling);
  float* u = scratch(static_cast<size_t>(kPoints * tiling.in * tiling.out), 1);
  float* v = scratch(static_cast<size_t>(kPoints * group * tiling.in), 2);
  float* m = scratch(static_cast<size_t>(kPoints * group * tiling.out), 3);
  transform_filters(tiling, weights, filters, u);
  const WinogradKernels& kernels = winograd_kernels();
  for (int64_t first = 0; first < tiling.tiles(); first += group) {
    const int64_t tiles = std::min(group, tiling.tiles() - first);
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t)  // V as [point][tile][in]
      for (int64_t block = 0; block < tiling.in / tiling.block; ++block)
        kernels.transform_input(tiling, input, first + t, block,
                                v + t * tiling.in + block * tiling.block, tiles * tiling.in);
#pragma omp parallel for
    for (int64_t p = 0; p < kPoints; ++p)  // M as [panel][point][tile][panel's channels]
      for (int64_t panel = 0; panel < tiling.panels(); ++panel)
        kernels.multiply_tiles(tiling, v + p * tiles * tiling.in,
                               u + in_panel(tiling, panel, p, tiling.in), tiles,
                               m + in_panel(tiling, panel, p, tiles));
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t block = 0; block < tiling.out / tiling.block; ++block)
        kernels.transform_output(tiling, m + in_block(tiling, block, tiles, t),
                                 tiles * tiling.panel, first + t, block, bias, relu, output);
  }
}

}  // namespace

WinogradChoice winograd_choice(const ConvolutionShape& s) {
  const bool plain_geometry = s.stride_height == 1 && s.stride_width == 1 &&
                              s.dilation_height == 1 && s.dilation_width == 1 && s.groups == 1 &&
                              s.padding_height == s.padding_width && s.padding_height <= 2;
  const bool possible = s.kernel_height == 3 && s.kernel_width == 3 && plain_geometry &&
                        s.in_block == s.out_block && s.in_channels % 16 == 0 &&
                        s.out_channels % 16 == 0;
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
                              .padding_width = 2 - shape.padding_width,
                              .in_block = shape.out_block,
                              .out_block = shape.in_block};
  convolve(tiling_of(back), output_gradient, weights, Filters::turned, nullptr, false,
           input_gradient);
}

void winograd_backward_weights(const ConvolutionShape& shape, const float* input,
                               const float* output_gradient, Write write, float* weight_gradient) {
  const Tiling tiling = tiling_of(shape);
  const int64_t group = tiles_at_once(tiling);
  float* du = scratch(static_cast<size_t>(kPoints * tiling.in * tiling.out), 1);
  float* v = scratch(static_cast<size_t>(kPoints * group * tiling.in), 2);
  float* w = scratch(static_cast<size_t>(kPoints * group * tiling.out), 3);
  const WinogradKernels& kernels = winograd_kernels();
  for (int64_t first = 0; first < tiling.tiles(); first += group) {
    const int64_t tiles = std::min(group, tiling.tiles() - first);
#pragma omp parallel for
    for (int64_t t = 0; t < tiles; ++t) {
      // V as [point][in / block][tile][block], the gradient as [panel][point][tile][channels].
      for (int64_t block = 0; block < tiling.in / tiling.block; ++block)
        kernels.transform_input(tiling, input, first + t, block,
                                v + (block * tiles + t) * tiling.block, tiles * tiling.in);
      for (int64_t block = 0; block < tiling.out / tiling.block; ++block)
        kernels.transform_gradient(tiling, output_gradient, first + t, block,
                                   w + in_block(tiling, block, tiles, t), tiles * tiling.panel);
    }
#pragma omp parallel for
    for (int64_t p = 0; p < kPoints; ++p)  // dU as [panel][point][in][channels]
      for (int64_t panel = 0; panel < tiling.panels(); ++panel)
        kernels.multiply_gradients(tiling, v + p * tiles * tiling.in,
                                   w + in_panel(tiling, panel, p, tiles), tiles, first > 0,
                                   du + in_panel(tiling, panel, p, tiling.in));
  }
#pragma omp parallel for
  for (int64_t panel = 0; panel < tiling.panels(); ++panel)
    for (int64_t c = 0; c < tiling.in; ++c)
      kernels.transform_filter_gradients(
          tiling, du + in_panel(tiling, panel, 0, tiling.in) + c * tiling.panel,
          tiling.in * tiling.panel, write == Write::add,
          weight_gradient + (panel * tiling.panel * tiling.in + c) * 9, tiling.in * 9);
}

}  // namespace renkei::compute
