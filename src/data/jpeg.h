#pragma once

#include <string>
#include <string_view>

#include "data/image.h"

namespace renkei::data {

// Whether this build reads and writes JPEG (CMake option RENKEI_JPEG). Without it the functions
// below throw a usage Error that says how to get it.
#ifdef RENKEI_HAVE_JPEG
inline constexpr bool kHaveJpeg = true;
#else
inline constexpr bool kHaveJpeg = false;
#endif

// The bytes of a JPEG file. The image has 1 or 3 channels; quality is 1 (small) to 100 (faithful).
std::string encode_jpeg(const Image& image, int quality);

// Always RGB. A file that is damaged, cut off or not a JPEG is a data Error that calls it `name`.
Image decode_jpeg(std::string_view bytes, std::string_view name);

}  // namespace renkei::data
