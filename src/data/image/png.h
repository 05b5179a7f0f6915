#pragma once

#include <string_view>

#include "data/image/image.h"

namespace renkei::data {

// Grey, palette and 16-bit images become RGB of 8 bits; transparency is ignored. What is damaged is
// a data Error that calls it `name`. Builds without libpng (CMake option RENKEI_PNG) throw a usage
// Error that says how to get it.
void decode_png(std::string_view bytes, std::string_view name, Image& image);
ImageExtent read_png_extent(std::string_view bytes, std::string_view name);

bool looks_like_png(std::string_view bytes);

}  // namespace renkei::data
