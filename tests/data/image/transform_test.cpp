#include "data/image/transform.h"

#include <png.h>

#include "data/image/decode.h"
#include "data/image/png.h"
#include "data/shapes.h"
#include "data/source/npy.h"
#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

Image picture(int width, int height) {
  return resize(draw_shape(3, 4, std::max(width, height)).image, width, height);
}

std::string png_of(const Image& image, uint32_t format) {
  png_image state{};
  state.version = PNG_IMAGE_VERSION;
  state.width = static_cast<png_uint_32>(image.width);
  state.height = static_cast<png_uint_32>(image.height);
  state.format = format;
  size_t size = 0;
  png_image_write_to_memory(&state, nullptr, &size, 0, image.pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&state, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  return bytes;
}

std::string npy_of(const Image& image) {
  return make_npy_header(kByteElement, {image.height, image.width, image.channels}) +
         std::string(image.pixels.begin(), image.pixels.end());
}

Random any(uint64_t sample) {
  return Random(1, RandomUse::augmentation, 0, sample);
}

std::vector<float> run(std::string_view bytes, const TransformOptions& options,
                       uint64_t sample = 0) {
  TransformScratch scratch;
  std::vector<float> output(static_cast<size_t>(options.width * options.height * 3));
  transform_image(bytes, "test", options, any(sample), scratch, output);
  return output;
}

TEST(Transform, EveryKindOfFileGivesTheSameNumbers) {
  const Image image = picture(40, 30);
  const TransformOptions options{.height = 16, .width = 16, .crop = Crop::random, .flip = true};
  const auto raw = run(npy_of(image), options);
  EXPECT_EQ(run(png_of(image, PNG_FORMAT_RGB), options), raw);
  TransformScratch scratch;
  std::vector<float> pixels(raw.size());
  transform_pixels({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()},
                   {40, 30}, 3, options, any(0), scratch, pixels);
  EXPECT_EQ(pixels, raw);
  const auto jpeg = run(encode_jpeg(image, 100), options);
  for (size_t i = 0; i < raw.size(); ++i) ASSERT_NEAR(jpeg[i], raw[i], 0.15f);
}

TEST(Transform, ARegionOfAJpegIsThatOfTheWholePicture) {
  const Image image = picture(150, 110);
  for (const int quality : {40, 95}) {
    const std::string bytes = encode_jpeg(image, quality);
    const Image whole = decode_jpeg(bytes, "test");
    const std::string pixels = npy_of(whole);
    for (uint64_t sample = 0; sample < 40; ++sample) {
      // The output is larger than half of the region, so nothing is decoded at a smaller scale.
      const TransformOptions options{.height = 96, .width = 96, .crop = Crop::random, .flip = true};
      EXPECT_EQ(run(bytes, options, sample), run(pixels, options, sample)) << sample;
    }
  }
}

TEST(Transform, SmallOutputsAreDecodedAtASmallerScale) {
  EXPECT_EQ(choose_denominator({0, 0, 447, 448}, {224, 224}), 1);
  EXPECT_EQ(choose_denominator({0, 0, 448, 448}, {224, 224}), 2);
  EXPECT_EQ(choose_denominator({9, 9, 4000, 4000}, {224, 224}), 8);
  const Image image = picture(331, 263);
  const std::string jpeg = encode_jpeg(image, 100), raw = npy_of(image);
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const TransformOptions options{.height = 24, .width = 24, .crop = Crop::random};
    const auto scaled = run(jpeg, options, sample), exact = run(raw, options, sample);
    double difference = 0;
    for (size_t i = 0; i < exact.size(); ++i) difference += std::abs(scaled[i] - exact[i]);
    EXPECT_LT(difference / static_cast<double>(exact.size()), 0.06) << sample;
  }
}

TEST(Transform, NormalisesEachChannel) {
  const Image image{2, 2, 3, {0, 51, 255, 0, 51, 255, 0, 51, 255, 0, 51, 255}};
  const auto numbers =
      run(npy_of(image),
          {.height = 2, .width = 2, .normalisation = {{0, 0.2f, 0.5f}, {1, 0.5f, 0.25f}}});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(numbers[i], 0, 1e-6);
    EXPECT_NEAR(numbers[4 + i], 0, 1e-6);
    EXPECT_NEAR(numbers[8 + i], 2, 1e-5);
  }
}

TEST(Transform, JitterOfNothingChangesNothingAndOfSomethingDoes) {
  const std::string raw = npy_of(picture(32, 32));
  const auto plain = run(raw, {.height = 32, .width = 32});
  const auto faint = run(raw, {.height = 32, .width = 32, .jitter = 1e-6f});
  const auto strong = run(raw, {.height = 32, .width = 32, .jitter = 0.4f});
  double difference = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_NEAR(faint[i], plain[i], 1e-4f);
    difference += std::abs(strong[i] - plain[i]);
    ASSERT_GE(strong[i], -2 - 1e-5f);
    ASSERT_LE(strong[i], 2 + 1e-5f);
  }
  EXPECT_GT(difference / static_cast<double>(plain.size()), 0.02);
}

TEST(Png, ReadsGreyAndDropsTransparency) {
  const Image grey{3, 1, 1, {0, 100, 255}};
  Image decoded;
  decode_png(png_of(grey, PNG_FORMAT_GRAY), "test", decoded);
  EXPECT_EQ(decoded, (Image{3, 1, 3, {0, 0, 0, 100, 100, 100, 255, 255, 255}}));
  const Image clear{2, 1, 4, {10, 20, 30, 0, 40, 50, 60, 255}};
  decode_png(png_of(clear, PNG_FORMAT_RGBA), "test", decoded);
  EXPECT_EQ(decoded, (Image{2, 1, 3, {10, 20, 30, 40, 50, 60}}));
}

TEST(Png, ACutOrDamagedFileIsAnError) {
  const std::string bytes = png_of(picture(32, 32), PNG_FORMAT_RGB);
  Image image;
  for (size_t size = 8; size + 16 < bytes.size(); size += 1 + size / 10)
    expect_error(ErrorCode::data, "cut.png is not a readable PNG image",
                 [&] { decode_png(std::string_view(bytes).substr(0, size), "cut.png", image); });
  std::string bad = bytes;
  bad[bytes.size() / 2] ^= 1;
  expect_error(ErrorCode::data, "bad.png is not a readable",
               [&] { decode_png(bad, "bad.png", image); });
}

TEST(Decode, WhatIsNoImageIsRefused) {
  expect_error(ErrorCode::data, "a.jpg is neither a JPEG nor a PNG image",
               [] { read_image_extent("text", "a.jpg"); });
  expect_error(ErrorCode::data, "is an array, but not of an image", [] {
    read_image_extent(make_npy_header(kByteElement, {0, 4}), "a.npy");
  });
}

}  // namespace
}  // namespace renkei::data
