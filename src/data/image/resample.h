#pragma once

#include <array>
#include <span>

#include "data/image/image.h"

namespace renkei::data {

// What is taken from a decoded image: the rectangle from (x, y), in pixels that need not be whole,
// as an image that was decoded at half its size has its regions at half places.
struct Window {
  float x = 0;
  float y = 0;
  float width = 0;
  float height = 0;
};

struct ResampleTask {
  const Image& image;  // RGB
  Window window;
  int width = 0;  // of the output
  int height = 0;
  bool flip = false;                       // left and right
  std::array<float, 3> scale = {1, 1, 1};  // an output is byte × scale + bias
  std::array<float, 3> bias = {0, 0, 0};
};

// Memory that one thread uses again and again.
struct ResampleScratch {
  std::vector<float> row;
  std::vector<float> weights;
  std::vector<int> places;
};

// The window, resized by the filter that image.cpp describes, mirrored and normalised, written
// channel by channel (CHW): one pass over the pixels, no image in between. Only pixels in the
// window have a part in it.
void resample(const ResampleTask& task, ResampleScratch& scratch, std::span<float> output);

// What resample must agree with, up to rounding.
void resample_plainly(const ResampleTask& task, std::span<float> output);

}  // namespace renkei::data
