#pragma once

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

Image resize(const Image& image, int width, int height);

}  // namespace renkei::data
