#include "data/jpeg.h"

#include <cmath>
#include <cstdio>

#include <jpeglib.h>

#include "base/philox.h"
#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

Image smooth(int width, int height, int channels) {
  Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((x * (3 + c) + y * (5 - c)) % 256 / 2 + 60));
  return image;
}

Image noise(int side) {
  Image image{side, side, 3, {}};
  Random random(1, RandomUse::synth_image, 0, 0);
  for (int i = 0; i < side * side * 3; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  return image;
}

double mean_difference(const Image& a, const Image& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

// A print-shop JPEG, which encode_jpeg itself never makes.
std::string cmyk_jpeg() {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors;
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = state.image_height = 8;
  state.input_components = 4;
  state.in_color_space = JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_start_compress(&state, TRUE);
  std::vector<uint8_t> pixels(8 * 4, 77);
  JSAMPROW row = pixels.data();
  while (state.next_scanline < state.image_height) jpeg_write_scanlines(&state, &row, 1);
  jpeg_finish_compress(&state);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&state);
  std::free(buffer);
  return bytes;
}

TEST(Jpeg, RoundTripChangesPixelsOnlyALittle) {
  const Image image = smooth(37, 21, 3);
  const Image decoded = decode_jpeg(encode_jpeg(image, 95), "test");
  ASSERT_EQ(decoded.width, 37);
  ASSERT_EQ(decoded.height, 21);
  ASSERT_EQ(decoded.channels, 3);
  EXPECT_LT(mean_difference(image, decoded), 2.0);
}

TEST(Jpeg, LowerQualityIsSmallerAndWorse) {
  const Image image = noise(64);
  const std::string fine = encode_jpeg(image, 95), coarse = encode_jpeg(image, 20);
  EXPECT_LT(coarse.size(), fine.size());
  EXPECT_GT(mean_difference(image, decode_jpeg(coarse, "test")),
            mean_difference(image, decode_jpeg(fine, "test")));
}

TEST(Jpeg, NoiseAtFullQualityFitsTheBuffer) {
  for (int side : {1, 8, 17, 300}) {
    const Image image = noise(side);
    EXPECT_LT(mean_difference(image, decode_jpeg(encode_jpeg(image, 100), "test")), 3.0);
  }
}

TEST(Jpeg, GreyImagesAreReadAsRgb) {
  const Image decoded = decode_jpeg(encode_jpeg(smooth(16, 16, 1), 95), "test");
  ASSERT_EQ(decoded.channels, 3);
  ASSERT_EQ(decoded.pixels.size(), 16u * 16 * 3);
  for (size_t i = 0; i < decoded.pixels.size(); i += 3) {
    EXPECT_EQ(decoded.pixels[i], decoded.pixels[i + 1]);
    EXPECT_EQ(decoded.pixels[i], decoded.pixels[i + 2]);
  }
}

TEST(Jpeg, CmykImagesAreRefused) {
  expect_error(ErrorCode::data, "print.jpg is a CMYK image",
               [] { decode_jpeg(cmyk_jpeg(), "print.jpg"); });
}

TEST(Jpeg, AFileCutOffAnywhereIsAnErrorThatNamesIt) {
  const std::string bytes = encode_jpeg(noise(32), 90);
  // The last two bytes only say "end of image"; libjpeg misses them, too, but no pixel is lost.
  for (size_t size = 0; size + 2 < bytes.size(); size += 1 + size / 40)
    expect_error(ErrorCode::data, "cut.jpg is not a readable JPEG image",
                 [&] { decode_jpeg(std::string_view(bytes).substr(0, size), "cut.jpg"); });
}

TEST(Jpeg, OtherFilesAreRefused) {
  expect_error(ErrorCode::data, "notes.jpg is not a readable JPEG image",
               [] { decode_jpeg("Dear diary, today I was renamed to .jpg", "notes.jpg"); });
}

TEST(Jpeg, DamagedBytesNeverCrash) {
  const std::string bytes = encode_jpeg(noise(24), 90);
  Random random(3, RandomUse::synth_image, 0, 0);
  int refused = 0;
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i)
      damaged[random.below(static_cast<uint32_t>(damaged.size()))] ^=
          static_cast<char>(1 + random.below(255));
    try {
      decode_jpeg(damaged, "damaged.jpg");
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::data);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(Jpeg, AbsurdSizesAreRefusedBeforeMemoryIsTaken) {
  std::string bytes = encode_jpeg(smooth(16, 16, 3), 90);
  const size_t frame = bytes.find("\xFF\xC0");  // marker, length (2), precision (1), height, width
  ASSERT_NE(frame, std::string::npos);
  bytes.replace(frame + 5, 4, "\xFF\x00\xFF\x00", 4);
  expect_error(ErrorCode::data, "claims to have 65280 x 65280 pixels",
               [&] { decode_jpeg(bytes, "huge.jpg"); });
}

TEST(Jpeg, QualityOutOfRangeIsAUsageError) {
  for (int quality : {-1, 0, 101})
    expect_error(ErrorCode::usage, "quality", [&] { encode_jpeg(smooth(8, 8, 3), quality); });
}

TEST(Jpeg, AnImageThatContradictsItselfIsABug) {
  Image image = smooth(8, 8, 3);
  image.pixels.pop_back();
  expect_error(ErrorCode::bug, "cannot be written", [&] { encode_jpeg(image, 90); });
  expect_error(ErrorCode::bug, "cannot be written", [&] { encode_jpeg(Image{}, 90); });
}

}  // namespace
}  // namespace renkei::data
