#pragma once

#include "base/philox.h"
#include "data/image/image.h"

namespace renkei::data {

// Which part of an image a network sees. `random` follows the usual recipe for training on ImageNet
// (Szegedy et al., "Going deeper with convolutions", 2015): an area of 8 to 100 % of the image with
// sides in a ratio of 3:4 to 4:3. `centre` is the usual one for evaluation: the largest centred
// rectangle of the output's shape, shrunk by 224/256. `whole` squeezes the image into the output.
enum class Crop { whole, centre, random };

Region choose_region(Crop crop, ImageExtent image, ImageExtent output, Random& random);

}  // namespace renkei::data
