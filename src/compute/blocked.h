// The layout in which images go from layer to layer: channels in blocks of 8 or 16, the values of a
// pixel's block next to each other, so that a vector register holds the channels of one pixel.
//
//   plain     [batch][channel][height][width]
//   blocked   [batch][channel / block][height][width][channel % block]
//
// It is oneDNN's nChw8c or nChw16c. PyTorch converts to it and back around every convolution; here
// a whole network stays in it.
#pragma once

#include <cstdint>

namespace renkei::compute {

inline constexpr int64_t kBlock = 8;  // where nothing else is said

struct ImageShape {
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t block = kBlock;  // 8 or 16; 1 is the plain layout

  int64_t pixels() const { return height * width; }
  int64_t count() const { return batch * channels * pixels(); }
  int64_t blocks() const { return channels / block; }
  bool can_be_blocked() const { return block > 1 && channels % block == 0; }
  bool operator==(const ImageShape&) const = default;
};

}  // namespace renkei::compute
