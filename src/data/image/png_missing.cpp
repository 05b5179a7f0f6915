// The twin of png.cpp for builds without libpng.
#include "base/error.h"
#include "data/image/png.h"

namespace renkei::data {
namespace {

Error missing() {
  return Error(ErrorCode::usage, "this renkei was built without PNG support",
               "install libpng-dev and configure with -DRENKEI_PNG=ON");
}

}  // namespace

void decode_png(std::string_view, std::string_view, Image&) {
  throw missing();
}

ImageExtent read_png_extent(std::string_view, std::string_view) {
  throw missing();
}

bool looks_like_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n");
}

}  // namespace renkei::data
