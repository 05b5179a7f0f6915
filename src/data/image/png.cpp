#include "data/image/png.h"

#include <png.h>

#include "base/error.h"

namespace renkei::data {
namespace {

// libpng's simple interface: it catches its own errors, and the struct says what they were.
struct Reader {
  png_image state{};
  Reader() { state.version = PNG_IMAGE_VERSION; }
  Reader(const Reader&) = delete;
  ~Reader() { ::png_image_free(&state); }
};

Error damaged_png(std::string_view name, const Reader& reader) {
  return Error(ErrorCode::data,
               fmt::format("{} is not a readable PNG image: {}", name, reader.state.message),
               "the file is damaged or incomplete; copy it again from its source, or remove it");
}

void open(Reader& reader, std::string_view bytes, std::string_view name) {
  if (!::png_image_begin_read_from_memory(&reader.state, bytes.data(), bytes.size()))
    throw damaged_png(name, reader);
  if (int64_t{reader.state.width} * reader.state.height > kMaxPixels)
    throw Error(ErrorCode::data,
                fmt::format("{} claims to have {} x {} pixels, which is too many", name,
                            reader.state.width, reader.state.height),
                "make it smaller, or remove it if the file is damaged");
}

}  // namespace

ImageExtent read_png_extent(std::string_view bytes, std::string_view name) {
  Reader reader;
  open(reader, bytes, name);
  return {static_cast<int>(reader.state.width), static_cast<int>(reader.state.height)};
}

void decode_png(std::string_view bytes, std::string_view name, Image& image) {
  Reader reader;
  open(reader, bytes, name);
  const bool alpha = (reader.state.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  // Asked for RGB of a transparent image, libpng would mix in a background.
  reader.state.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  const size_t pixels = size_t{reader.state.width} * reader.state.height;
  image.width = static_cast<int>(reader.state.width);
  image.height = static_cast<int>(reader.state.height);
  image.channels = 3;
  image.pixels.resize(pixels * (alpha ? 4 : 3));
  if (!::png_image_finish_read(&reader.state, nullptr, image.pixels.data(), 0, nullptr))
    throw damaged_png(name, reader);
  // libpng fills what is cut off with zeros and only warns; training on that would go unnoticed.
  if (reader.state.warning_or_error != 0) throw damaged_png(name, reader);
  if (!alpha) return;
  for (size_t i = 0; i < pixels; ++i)
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = image.pixels[4 * i + c];
  image.pixels.resize(pixels * 3);
}

bool looks_like_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n");
}

}  // namespace renkei::data
