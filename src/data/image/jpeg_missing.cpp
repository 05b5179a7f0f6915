// The twin of jpeg.cpp for builds without libjpeg: the same functions, ending in a named error.
#include "base/error.h"
#include "data/image/jpeg.h"

namespace renkei::data {
namespace {

Error missing() {
  return Error(ErrorCode::usage, "this renkei was built without JPEG support",
               "install libjpeg62-turbo-dev and configure with -DRENKEI_JPEG=ON");
}

}  // namespace

std::string encode_jpeg(const Image&, int) {
  throw missing();
}

Image decode_jpeg(std::string_view, std::string_view) {
  throw missing();
}

JpegHeader read_jpeg_header(std::string_view, std::string_view) {
  throw missing();
}

Corner decode_jpeg_region(std::string_view, std::string_view, const Region&, int, Image&) {
  throw missing();
}

std::string make_jpeg_baseline(std::string_view, std::string_view) {
  throw missing();
}

bool looks_like_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF");
}

}  // namespace renkei::data
