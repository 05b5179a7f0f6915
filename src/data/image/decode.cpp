#include "data/image/decode.h"

#include <algorithm>

#include "base/error.h"
#include "data/image/png.h"

namespace renkei::data {
namespace {

struct RawImage {
  ImageExtent extent;
  int channels;
  std::string_view pixels;
};

RawImage parse_raw(std::string_view bytes, std::string_view name) {
  const NpyHeader header = parse_npy_header(bytes, name);
  const auto& shape = header.shape;
  const bool flat = shape.size() == 2;
  if (!is_raw_image(header))
    throw Error(ErrorCode::data, fmt::format("{} is an array, but not of an image", name),
                "an image is height x width x 3 bytes");
  return {.extent = {static_cast<int>(shape[1]), static_cast<int>(shape[0])},
          .channels = flat ? 1 : static_cast<int>(shape[2]),
          .pixels = bytes.substr(static_cast<size_t>(header.data_offset))};
}

Error unknown(std::string_view name) {
  return Error(ErrorCode::data, fmt::format("{} is neither a JPEG nor a PNG image", name),
               "convert it, or remove it");
}

}  // namespace

bool is_raw_image(const NpyHeader& header) {
  const auto& shape = header.shape;
  const bool pixels = shape.size() == 2 || (shape.size() == 3 && (shape[2] == 1 || shape[2] == 3));
  return header.type == kByteElement && pixels && shape[0] >= 1 && shape[1] >= 1 &&
         shape[0] <= kMaxPixels / shape[1];
}

ImageExtent read_image_extent(std::string_view bytes, std::string_view name) {
  if (looks_like_jpeg(bytes)) return read_jpeg_header(bytes, name).extent;
  if (looks_like_png(bytes)) return read_png_extent(bytes, name);
  if (looks_like_npy(bytes)) return parse_raw(bytes, name).extent;
  throw unknown(name);
}

bool decodes_in_part(std::string_view bytes) {
  return looks_like_jpeg(bytes);
}

Corner decode_image_region(std::string_view bytes, std::string_view name, const Region& region,
                           int denominator, Image& image) {
  if (looks_like_jpeg(bytes)) return decode_jpeg_region(bytes, name, region, denominator, image);
  if (looks_like_png(bytes)) {
    decode_png(bytes, name, image);
  } else if (looks_like_npy(bytes)) {
    const RawImage raw = parse_raw(bytes, name);
    copy_pixels(raw.pixels, raw.extent, raw.channels, image);
  } else {
    throw unknown(name);
  }
  return {};
}

void copy_pixels(std::string_view pixels, ImageExtent extent, int channels, Image& image) {
  const size_t count = static_cast<size_t>(extent.width) * static_cast<size_t>(extent.height);
  image.width = extent.width;
  image.height = extent.height;
  image.channels = 3;
  image.pixels.resize(count * 3);
  const auto* from = reinterpret_cast<const uint8_t*>(pixels.data());
  if (channels == 3) {
    std::copy(from, from + count * 3, image.pixels.begin());
    return;
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = from[i];
}

}  // namespace renkei::data
