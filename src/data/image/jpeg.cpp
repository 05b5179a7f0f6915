// libjpeg reports errors by calling back and expects not to be returned to: it leaves by longjmp,
// which runs no destructors. So the functions that contain a setjmp hold nothing but plain values,
// and all that must be released belongs to their callers.
#include "data/image/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "base/error.h"

// These need <cstdio> before them.
#include <jerror.h>
#include <jpeglib.h>

namespace renkei::data {
namespace {

struct Failure {
  jpeg_error_mgr manager;  // first, so that libjpeg's pointer to it is a pointer to Failure
  std::jmp_buf jump;
  char reason[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr state) {
  auto* failure = reinterpret_cast<Failure*>(state->err);
  failure->manager.format_message(state, failure->reason);
  std::longjmp(failure->jump, 1);
}

// libjpeg only warns when data ends early or makes no sense, and fills the rest with grey. Training
// on that would go unnoticed, so a warning is an error here, but for harmless oddities of writers.
void on_message(j_common_ptr state, int level) {
  if (level >= 0) return;
  switch (state->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return;
  }
  leave(state);
}

void install(Failure& failure, jpeg_error_mgr*& slot) {
  slot = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = leave;
  failure.manager.emit_message = on_message;
  failure.reason[0] = '\0';
}

struct Decoder {
  jpeg_decompress_struct state{};
  Failure failure{};
  Decoder() { install(failure, state.err); }
  Decoder(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&state); }
};

bool read_header(Decoder& decoder, std::string_view bytes) {
  if (setjmp(decoder.failure.jump)) return false;
  jpeg_create_decompress(&decoder.state);
  jpeg_mem_src(&decoder.state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&decoder.state, TRUE);
  return true;
}

bool start(Decoder& decoder, int denominator) {
  if (setjmp(decoder.failure.jump)) return false;
  const bool printed =
      decoder.state.jpeg_color_space == JCS_CMYK || decoder.state.jpeg_color_space == JCS_YCCK;
  decoder.state.out_color_space = printed ? JCS_CMYK : JCS_RGB;
  decoder.state.scale_num = 1;
  decoder.state.scale_denom = static_cast<unsigned>(denominator);
  jpeg_start_decompress(&decoder.state);
  return true;
}

// What libjpeg makes of the columns we want: it starts at whole blocks.
bool crop_columns(Decoder& decoder, JDIMENSION& x, JDIMENSION& width) {
  if (setjmp(decoder.failure.jump)) return false;
  if (width < decoder.state.output_width) jpeg_crop_scanline(&decoder.state, &x, &width);
  return true;
}

bool read_rows(Decoder& decoder, JDIMENSION first, JDIMENSION count, uint8_t* pixels,
               size_t stride) {
  if (setjmp(decoder.failure.jump)) return false;
  if (first > 0) jpeg_skip_scanlines(&decoder.state, first);
  const JDIMENSION end = first + count;
  while (decoder.state.output_scanline < end) {
    JSAMPROW row = pixels + size_t{decoder.state.output_scanline - first} * stride;
    jpeg_read_scanlines(&decoder.state, &row, 1);
  }
  // What is below is not parsed; at the end of the file its damage would be noticed here.
  if (end == decoder.state.output_height) jpeg_finish_decompress(&decoder.state);
  return true;
}

// Photoshop writes inks as "how much is left", and so does nearly everyone who writes CMYK.
void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, bool inverted, std::vector<uint8_t>& rgb) {
  rgb.resize(cmyk.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.size() / 4; ++i)
    for (size_t c = 0; c < 3; ++c) {
      const int ink = inverted ? cmyk[4 * i + c] : 255 - cmyk[4 * i + c];
      const int black = inverted ? cmyk[4 * i + 3] : 255 - cmyk[4 * i + 3];
      rgb[3 * i + c] = static_cast<uint8_t>((ink * black + 127) / 255);
    }
}

struct Encoder {
  jpeg_compress_struct state{};
  Failure failure{};
  Encoder() { install(failure, state.err); }
  Encoder(const Encoder&) = delete;
  ~Encoder() { jpeg_destroy_compress(&state); }
};

bool write_rows(Encoder& encoder, const Image& image, int quality, unsigned char*& buffer,
                unsigned long& size) {
  if (setjmp(encoder.failure.jump)) return false;
  jpeg_create_compress(&encoder.state);
  jpeg_mem_dest(&encoder.state, &buffer, &size);
  encoder.state.image_width = static_cast<JDIMENSION>(image.width);
  encoder.state.image_height = static_cast<JDIMENSION>(image.height);
  encoder.state.input_components = image.channels;
  encoder.state.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder.state);
  jpeg_set_quality(&encoder.state, quality, TRUE);
  // Colour at full resolution: halving it, the default, smears the small images used here.
  encoder.state.comp_info[0].h_samp_factor = 1;
  encoder.state.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&encoder.state, TRUE);
  const size_t stride = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  while (encoder.state.next_scanline < encoder.state.image_height) {
    // libjpeg's interface predates const; it does not write to the rows.
    JSAMPROW row = const_cast<uint8_t*>(&image.pixels[encoder.state.next_scanline * stride]);
    jpeg_write_scanlines(&encoder.state, &row, 1);
  }
  jpeg_finish_compress(&encoder.state);
  return true;
}

bool transcode(Decoder& decoder, Encoder& encoder, unsigned char*& buffer, unsigned long& size) {
  // Either of the two may fail, and both leave to the same place.
  if (setjmp(decoder.failure.jump)) return false;
  jpeg_create_compress(&encoder.state);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&decoder.state);
  jpeg_copy_critical_parameters(&decoder.state, &encoder.state);
  encoder.state.optimize_coding = TRUE;
  jpeg_mem_dest(&encoder.state, &buffer, &size);
  jpeg_write_coefficients(&encoder.state, coefficients);
  jpeg_finish_compress(&encoder.state);
  return true;
}

// No JPEG of this size is larger (the bound of TurboJPEG's tjBufSize), so libjpeg never has to
// replace the buffer, and there is none to lose when it fails.
size_t largest_jpeg(size_t width, size_t height) {
  return ((width + 15) & ~size_t{15}) * ((height + 15) & ~size_t{15}) * 6 + 2048;
}

Error damaged_jpeg(std::string_view name, const Failure& failure) {
  return Error(ErrorCode::data,
               fmt::format("{} is not a readable JPEG image: {}", name, failure.reason),
               "the file is damaged or incomplete; copy it again from its source, or remove it");
}

void open(Decoder& decoder, std::string_view bytes, std::string_view name) {
  if (!read_header(decoder, bytes)) throw damaged_jpeg(name, decoder.failure);
  const jpeg_decompress_struct& header = decoder.state;
  if (int64_t{header.image_width} * header.image_height > kMaxPixels)
    throw Error(ErrorCode::data,
                fmt::format("{} claims to have {} x {} pixels, which is too many", name,
                            header.image_width, header.image_height),
                "make it smaller, or remove it if the file is damaged");
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  if (quality < 1 || quality > 100)
    throw Error(ErrorCode::usage, fmt::format("the JPEG quality {} is out of range", quality),
                "choose 1 (small files) to 100 (faithful images)");
  const auto width = static_cast<size_t>(image.width), height = static_cast<size_t>(image.height);
  if (image.width < 1 || image.height < 1 || (image.channels != 1 && image.channels != 3) ||
      image.pixels.size() != width * height * static_cast<size_t>(image.channels))
    throw Error(ErrorCode::bug,
                fmt::format("an image of {} x {} pixels, {} channels and {} bytes "
                            "cannot be written as JPEG",
                            image.width, image.height, image.channels, image.pixels.size()));
  std::string bytes(largest_jpeg(width, height), '\0');
  auto* buffer = reinterpret_cast<unsigned char*>(bytes.data());
  unsigned long size = bytes.size();
  Encoder encoder;
  if (!write_rows(encoder, image, quality, buffer, size))
    throw Error(ErrorCode::data,
                fmt::format("could not encode a JPEG image: {}", encoder.failure.reason));
  bytes.resize(size);
  return bytes;
}

Image decode_jpeg(std::string_view bytes, std::string_view name) {
  const auto [width, height] = read_jpeg_header(bytes, name).extent;
  Image image;
  decode_jpeg_region(bytes, name, {0, 0, width, height}, 1, image);
  return image;
}

JpegHeader read_jpeg_header(std::string_view bytes, std::string_view name) {
  Decoder decoder;
  open(decoder, bytes, name);
  return {.extent = {static_cast<int>(decoder.state.image_width),
                     static_cast<int>(decoder.state.image_height)},
          .progressive = decoder.state.progressive_mode == TRUE};
}

Corner decode_jpeg_region(std::string_view bytes, std::string_view name, const Region& region,
                          int denominator, Image& image) {
  Decoder decoder;
  open(decoder, bytes, name);
  if (!start(decoder, denominator)) throw damaged_jpeg(name, decoder.failure);
  jpeg_decompress_struct& state = decoder.state;
  const auto full_width = static_cast<int>(state.output_width);
  const auto full_height = static_cast<int>(state.output_height);
  // Two pixels more on each side: colour is stored at half the resolution, and what is beside the
  // region has a part in it.
  constexpr int kMargin = 2;
  const auto low = [&](int edge) { return std::max(0, edge / denominator - kMargin); };
  const auto high = [&](int edge, int limit) {
    return std::min(limit, (edge + denominator - 1) / denominator + kMargin);
  };
  const int left = low(region.x), right = high(region.x + region.width, full_width);
  const int top = low(region.y), bottom = high(region.y + region.height, full_height);
  if (left >= right || top >= bottom)
    throw Error(ErrorCode::bug, fmt::format("a region outside of {}", name));

  auto x = static_cast<JDIMENSION>(left), columns = static_cast<JDIMENSION>(right - left);
  if (!crop_columns(decoder, x, columns)) throw damaged_jpeg(name, decoder.failure);
  // For a region as wide as the image nothing was cropped.
  if (right - left == full_width) x = 0;
  const auto channels = static_cast<size_t>(state.output_components);
  image.width = static_cast<int>(state.output_width);
  image.height = bottom - top;
  image.channels = 3;
  const size_t stride = size_t{state.output_width} * channels;
  std::vector<uint8_t> inks;
  std::vector<uint8_t>& rows = channels == 4 ? inks : image.pixels;
  rows.resize(stride * static_cast<size_t>(image.height));
  if (!read_rows(decoder, static_cast<JDIMENSION>(top), static_cast<JDIMENSION>(image.height),
                 rows.data(), stride))
    throw damaged_jpeg(name, decoder.failure);
  if (channels == 4) cmyk_to_rgb(inks, state.saw_Adobe_marker == TRUE, image.pixels);
  return {static_cast<int>(x), top};
}

std::string make_jpeg_baseline(std::string_view bytes, std::string_view name) {
  Decoder decoder;
  open(decoder, bytes, name);
  if (decoder.state.progressive_mode == FALSE) return std::string(bytes);
  std::string baseline(largest_jpeg(decoder.state.image_width, decoder.state.image_height), '\0');
  auto* buffer = reinterpret_cast<unsigned char*>(baseline.data());
  unsigned long size = baseline.size();
  Encoder encoder;
  encoder.state.err = decoder.state.err;
  if (!transcode(decoder, encoder, buffer, size)) throw damaged_jpeg(name, decoder.failure);
  baseline.resize(size);
  return baseline;
}

bool looks_like_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF");
}

}  // namespace renkei::data
