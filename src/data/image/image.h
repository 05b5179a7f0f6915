#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace renkei::data {

// Pixels row by row, the channels of a pixel next to each other (HWC).
struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<uint8_t> pixels;

  bool operator==(const Image&) const = default;
};

struct ImageExtent {
  int width = 0;
  int height = 0;

  bool operator==(const ImageExtent&) const = default;
};

// A part of an image, in pixels.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  bool operator==(const Region&) const = default;
};

// More pixels than this are taken for damage: a header of a few bytes may claim any number.
constexpr int64_t kMaxPixels = int64_t{1} << 28;

// What networks get of a byte: (byte / 255 - mean) / deviation, for each channel.
struct Normalisation {
  std::array<float, 3> mean = {0.5f, 0.5f, 0.5f};
  std::array<float, 3> deviation = {0.25f, 0.25f, 0.25f};
};

Image resize(const Image& image, int width, int height);

}  // namespace renkei::data
