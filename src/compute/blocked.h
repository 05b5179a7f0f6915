// The layout in which images go from layer to layer: channels in blocks of 8, the 8 values of a
// pixel next to each other, so that a vector register holds 8 channels of one pixel.
//
//   plain     [batch][channel][height][width]
//   blocked   [batch][channel / 8][height][width][channel % 8]
//
// It is oneDNN's nChw8c. PyTorch converts to it and back around every convolution; here a whole
// network stays in it.
#pragma once

#include <cstdint>

namespace renkei::compute {

inline constexpr int64_t kBlock = 8;

struct ImageShape {
  int64_t batch = 0, channels = 0, height = 0, width = 0;

  int64_t pixels() const { return height * width; }
  int64_t count() const { return batch * channels * pixels(); }
  bool can_be_blocked() const { return channels % kBlock == 0; }
  bool operator==(const ImageShape&) const = default;
};

}  // namespace renkei::compute
