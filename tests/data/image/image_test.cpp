#include "data/image/image.h"

#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

Image grey(int width, int height, std::vector<uint8_t> pixels) {
  return {width, height, 1, std::move(pixels)};
}

TEST(Resize, KeepsAnImageOfTheRightSize) {
  const Image image = grey(3, 2, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(resize(image, 3, 2), image);
}

TEST(Resize, InterpolatesWhenItEnlarges) {
  EXPECT_EQ(resize(grey(2, 1, {0, 100}), 4, 1), grey(4, 1, {0, 25, 75, 100}));
  EXPECT_EQ(resize(grey(1, 2, {0, 100}), 1, 4), grey(1, 4, {0, 25, 75, 100}));
}

TEST(Resize, LooksAtAllPixelsWhenItShrinks) {
  // Stripes of one pixel: taking only the nearest two of each eight would keep some of them.
  Image stripes = grey(64, 8, std::vector<uint8_t>(64 * 8));
  for (size_t i = 0; i < stripes.pixels.size(); ++i) stripes.pixels[i] = i % 2 ? 200 : 0;
  for (const uint8_t pixel : resize(stripes, 8, 8).pixels) EXPECT_NEAR(pixel, 100, 4);
}

TEST(Resize, KeepsChannelsApart) {
  Image image{5, 7, 3, {}};
  for (int i = 0; i < 5 * 7; ++i) image.pixels.insert(image.pixels.end(), {255, 10, 0});
  const Image result = resize(image, 3, 11);
  ASSERT_EQ(result.pixels.size(), 3u * 11 * 3);
  for (size_t i = 0; i < result.pixels.size(); i += 3) {
    EXPECT_EQ(result.pixels[i], 255);
    EXPECT_EQ(result.pixels[i + 1], 10);
    EXPECT_EQ(result.pixels[i + 2], 0);
  }
}

TEST(Resize, RefusesSidesWithoutPixels) {
  expect_error(ErrorCode::usage, "to 0 x 5", [] { resize(grey(1, 1, {9}), 0, 5); });
  expect_error(ErrorCode::usage, "of 0 x 0", [] { resize(Image{}, 2, 2); });
}

}  // namespace
}  // namespace renkei::data
