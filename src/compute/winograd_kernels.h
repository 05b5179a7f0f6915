// The kernels of Winograd's method (winograd.h), compiled for each instruction set. Two widths of
// blocks: 8 with AVX's 16 registers in mind, 16 with AVX-512's 32.
#pragma once

#include <cstdint>

namespace renkei::compute {

inline constexpr int64_t kTile = 4;     // output pixels of a tile, in each direction
inline constexpr int64_t kPatch = 6;    // input pixels
inline constexpr int64_t kPoints = 36;  // values of a transformed tile

// One convolution as the kernels see it: tiles are numbered over the whole batch.
struct Tiling {
  int64_t batch, in, out, height, width, out_height, out_width, padding;
  int64_t tiles_down, tiles_across;
  int64_t block;  // of the images' layout
  int64_t panel;  // output channels that a product of matrices takes at once: one or two blocks

  int64_t per_image() const { return tiles_down * tiles_across; }
  int64_t tiles() const { return batch * per_image(); }
  int64_t panels() const { return out / panel; }

  struct Place {
    int64_t image, y, x;  // of the first output pixel
  };
  Place place(int64_t tile) const {
    const int64_t in_image = tile % per_image();
    return {tile / per_image(), in_image / tiles_across * kTile, in_image % tiles_across * kTile};
  }
};

struct WinogradKernels {
  // V of one tile and one block of input channels, to 36 places `point_step` values apart.
  void (*transform_input)(const Tiling& tiling, const float* input, int64_t tile, int64_t block,
                          float* to, int64_t point_step);
  // A dY Aᵀ of one tile and one block of output channels.
  void (*transform_gradient)(const Tiling& tiling, const float* gradient, int64_t tile,
                             int64_t block, float* to, int64_t point_step);
  // Y of one tile and one block of output channels, with bias and ReLU.
  void (*transform_output)(const Tiling& tiling, const float* from, int64_t point_step,
                           int64_t tile, int64_t block, const float* bias, bool relu,
                           float* output);
  // U of a panel of filters with the same input channel, `filter_step` values apart; `turned` means
  // by 180 degrees.
  void (*transform_filters)(const Tiling& tiling, const float* weights, int64_t filter_step,
                            bool turned, float* to, int64_t point_step);
  // The gradient of a panel of filters with the same input channel.
  void (*transform_filter_gradients)(const Tiling& tiling, const float* from, int64_t point_step,
                                     bool add, float* gradients, int64_t filter_step);
  // M of one point and one panel: V is [tile][in], U is [in][panel], M is [tile][panel].
  void (*multiply_tiles)(const Tiling& tiling, const float* v, const float* u, int64_t tiles,
                         float* m);
  // dU of one point and one panel: V is [in / block][tile][block], the gradient is [tile][panel],
  // dU is [in][panel].
  void (*multiply_gradients)(const Tiling& tiling, const float* v, const float* w, int64_t tiles,
                             bool add, float* du);
};

// Those for this machine.
const WinogradKernels& winograd_kernels();

}  // namespace renkei::compute
