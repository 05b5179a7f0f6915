#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/image.h"

namespace renkei::data {

struct LabelledImage {
  Image image;
  int label = 0;
};

// The names of the labels 0 … 9. They are in alphabetical order, so that a folder of these images
// is numbered alike.
const std::vector<std::string>& shape_names();

// The index-th image of an endless, balanced data set: its label is index % 10, everything else
// (colours, place, size, rotation, noise) is random. It depends on the arguments only.
LabelledImage draw_shape(uint64_t seed, int64_t index, int size_pixels);

}  // namespace renkei::data
