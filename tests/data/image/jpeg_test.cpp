#include "data/image/jpeg.h"

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

// Kinds of files that encode_jpeg never makes: four inks, progressive, colour at half resolution.
std::string other_jpeg(const Image& image, bool progressive) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors;
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = static_cast<JDIMENSION>(image.width);
  state.image_height = static_cast<JDIMENSION>(image.height);
  state.input_components = image.channels;
  state.in_color_space = image.channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&state);
  if (progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(
        &image.pixels[state.next_scanline * static_cast<size_t>(image.width * image.channels)]);
    jpeg_write_scanlines(&state, &row, 1);
  }
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

TEST(Jpeg, CmykImagesBecomeRgb) {
  // libjpeg marks the file as Photoshop does, so numbers say how much light is left: half of half.
  const Image inks{8, 8, 4, std::vector<uint8_t>(8 * 8 * 4, 128)};
  const Image decoded = decode_jpeg(other_jpeg(inks, false), "print.jpg");
  EXPECT_EQ(decoded, (Image{8, 8, 3, std::vector<uint8_t>(8 * 8 * 3, 64)}));
}

TEST(Jpeg, AProgressiveFileBecomesBaselineWithTheSamePixels) {
  const std::string progressive = other_jpeg(noise(40), true);
  ASSERT_TRUE(read_jpeg_header(progressive, "test").progressive);
  const std::string baseline = make_jpeg_baseline(progressive, "test");
  EXPECT_FALSE(read_jpeg_header(baseline, "test").progressive);
  EXPECT_EQ(decode_jpeg(baseline, "test"), decode_jpeg(progressive, "test"));
  EXPECT_EQ(make_jpeg_baseline(baseline, "test"), baseline);
  expect_error(ErrorCode::data, "cut.jpg is not a readable", [&] {
    make_jpeg_baseline(std::string_view(progressive).substr(0, progressive.size() / 2), "cut.jpg");
  });
}

TEST(Jpeg, ARegionHasThePixelsOfAFullDecoding) {
  const Image image = noise(90);
  for (const std::string& bytes :
       {other_jpeg(image, false), other_jpeg(image, true), encode_jpeg(image, 90)}) {
    const Image whole = decode_jpeg(bytes, "test");
    for (const Region region : {Region{0, 0, 90, 90},
                                {0, 0, 1, 1},
                                {89, 89, 1, 1},
                                {16, 16, 16, 16},
                                {31, 33, 20, 40},
                                {48, 0, 42, 90},
                                {5, 70, 80, 9}}) {
      Image part;
      const Corner corner = decode_jpeg_region(bytes, "test", region, 1, part);
      for (int y = region.y; y < region.y + region.height; ++y)
        for (int x = region.x; x < region.x + region.width; ++x)
          for (int c = 0; c < 3; ++c)
            ASSERT_EQ(part.pixels[static_cast<size_t>(
                          ((y - corner.y) * part.width + x - corner.x) * 3 + c)],
                      whole.pixels[static_cast<size_t>((y * 90 + x) * 3 + c)])
                << x << " " << y;
    }
  }
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
