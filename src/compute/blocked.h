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

// What this machine computes fastest with: 16 where its registers hold so many floats (AVX-512).
// Ranks that exchange images must agree on it.
int64_t preferred_block();

// Whether the processor multiplies bf16 numbers itself; else each product would be made of casts.
bool has_bf16_instructions();

// The block for images of so many channels: the preferred one, 8 where they do not fill it, and 1
// (plain) where they do not fill that.
int64_t block_for(int64_t channels, int64_t preferred = preferred_block());

}  // namespace renkei::compute
