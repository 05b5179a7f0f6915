#pragma once

#include <string_view>

#include "data/image/image.h"
#include "data/image/jpeg.h"
#include "data/source/npy.h"

namespace renkei::data {

// The image in a file of any kind we read, by its first bytes: JPEG, PNG, or a .npy array of bytes
// (height × width, or height × width × 1 or 3). Anything else is a data Error that calls it `name`.
ImageExtent read_image_extent(std::string_view bytes, std::string_view name);

// As decode_jpeg_region. Other kinds than JPEG are decoded whole and at full size.
Corner decode_image_region(std::string_view bytes, std::string_view name, const Region& region,
                           int denominator, Image& image);
bool decodes_in_part(std::string_view bytes);

// Whether an array is an image in this sense.
bool is_raw_image(const NpyHeader& header);

// Raw bytes of grey (1 channel) or RGB pixels to RGB.
void copy_pixels(std::string_view pixels, ImageExtent extent, int channels, Image& image);

}  // namespace renkei::data
