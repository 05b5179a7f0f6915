#pragma once

#include <string>
#include <string_view>

#include "data/image/image.h"

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

// A file that is damaged, cut off or not a JPEG is a data Error that calls it `name`, never a grey
// patch. Grey and CMYK images become RGB.
Image decode_jpeg(std::string_view bytes, std::string_view name);

struct JpegHeader {
  ImageExtent extent;
  bool progressive = false;
};
JpegHeader read_jpeg_header(std::string_view bytes, std::string_view name);

// Decodes only what `region` needs, at 1/1, 1/2, 1/4 or 1/8 of the size: columns outside are not
// transformed, rows above are only parsed, rows below not even that. `image` is overwritten (its
// memory is reused) with what was decoded, which may be a little more; the result is the place of
// its corner in the whole image at that scale. The pixels are those of a full decoding.
struct Corner {
  int x = 0;
  int y = 0;
};
Corner decode_jpeg_region(std::string_view bytes, std::string_view name, const Region& region,
                          int denominator, Image& image);

// The same pixels, to the bit, in a file that decodes in one pass: a progressive file takes almost
// three times as long and can't be decoded in part. Others are returned as they are.
std::string make_jpeg_baseline(std::string_view bytes, std::string_view name);

bool looks_like_jpeg(std::string_view bytes);

}  // namespace renkei::data
