#pragma once

#include <span>
#include <string_view>

#include "base/philox.h"
#include "data/image/crop.h"
#include "data/image/image.h"
#include "data/image/resample.h"

namespace renkei::data {

struct TransformOptions {
  int height = 224;  // of the result
  int width = 224;
  Crop crop = Crop::whole;
  bool flip = false;  // one image in two, left and right
  // How far brightness, contrast and saturation may be off: 0.4 multiplies each by 0.6 … 1.4.
  float jitter = 0;
  Normalisation normalisation = {};
};

// Memory that one thread uses again and again.
struct TransformScratch {
  Image image;
  ResampleScratch resample;
};

// From the bytes of an image file to the numbers that a network takes, channels first: decodes only
// the part that is needed, at the scale that is needed. All that is random comes from `random`.
void transform_image(std::string_view bytes, std::string_view name, const TransformOptions& options,
                     Random random, TransformScratch& scratch, std::span<float> output);

// The same for pixels that need no decoding: height × width × channels (1 or 3) bytes.
void transform_pixels(std::string_view pixels, ImageExtent extent, int channels,
                      const TransformOptions& options, Random random, TransformScratch& scratch,
                      std::span<float> output);

// 1, 2, 4 or 8: how far a region may be shrunk in decoding and still have the pixels of the output.
int choose_denominator(const Region& region, ImageExtent output);

}  // namespace renkei::data
