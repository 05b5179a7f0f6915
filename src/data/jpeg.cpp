// libjpeg reports errors by calling back and expects not to be returned to: it leaves by longjmp,
// which runs no destructors. So the functions that contain a setjmp hold nothing but plain values,
// and all that must be released belongs to their callers.
#include "data/jpeg.h"

#include <csetjmp>
#include <cstdio>

#include "base/error.h"

// These need <cstdio> before them.
#include <jerror.h>
#include <jpeglib.h>

namespace renkei::data {
namespace {

// A header of a few bytes may claim 65,500 x 65,500 pixels: refuse before memory is asked for.
constexpr int64_t kMaxPixels = int64_t{1} << 28;

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

bool read_rows(Decoder& decoder, uint8_t* pixels) {
  if (setjmp(decoder.failure.jump)) return false;
  decoder.state.out_color_space = JCS_RGB;
  jpeg_start_decompress(&decoder.state);
  while (decoder.state.output_scanline < decoder.state.output_height) {
    JSAMPROW row = pixels + size_t{decoder.state.output_scanline} * decoder.state.output_width * 3;
    jpeg_read_scanlines(&decoder.state, &row, 1);
  }
  jpeg_finish_decompress(&decoder.state);
  return true;
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
  // No JPEG of this size is larger (the bound of TurboJPEG's tjBufSize), so libjpeg never has to
  // replace the buffer, and there is none to lose when it fails.
  std::string bytes(((width + 15) & ~size_t{15}) * ((height + 15) & ~size_t{15}) * 6 + 2048, '\0');
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
  Decoder decoder;
  const auto damaged = [&] {
    return Error(ErrorCode::data,
                 fmt::format("{} is not a readable JPEG image: {}", name, decoder.failure.reason),
                 "the file is damaged or incomplete; copy it again from its source, or remove it");
  };
  if (!read_header(decoder, bytes)) throw damaged();
  const jpeg_decompress_struct& header = decoder.state;
  if (header.jpeg_color_space == JCS_CMYK || header.jpeg_color_space == JCS_YCCK)
    throw Error(ErrorCode::data, fmt::format("{} is a CMYK image made for printing", name),
                "convert it to RGB, for example with: convert IN.jpg -colorspace sRGB OUT.jpg");
  if (int64_t{header.image_width} * header.image_height > kMaxPixels)
    throw Error(ErrorCode::data,
                fmt::format("{} claims to have {} x {} pixels, which is too many", name,
                            header.image_width, header.image_height),
                "make it smaller, or remove it if the file is damaged");
  Image image{static_cast<int>(header.image_width), static_cast<int>(header.image_height), 3, {}};
  image.pixels.resize(size_t{header.image_width} * header.image_height * 3);
  if (!read_rows(decoder, image.pixels.data())) throw damaged();
  return image;
}

}  // namespace renkei::data
