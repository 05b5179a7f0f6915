// The twin of jpeg.cpp for builds without libjpeg: the same functions, ending in a named error.
#include "base/error.h"
#include "data/jpeg.h"

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

}  // namespace renkei::data
