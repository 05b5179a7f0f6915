#include "data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "data/synth_data.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"

namespace renkei::data {
namespace {

TEST(Shapes, NamesAreSortedAndDifferent) {
  EXPECT_EQ(shape_names().size(), 10u);
  EXPECT_TRUE(std::ranges::is_sorted(shape_names()));
  EXPECT_EQ(std::set(shape_names().begin(), shape_names().end()).size(), 10u);
}

TEST(Shapes, ImagesDependOnSeedAndIndexOnly) {
  EXPECT_EQ(draw_shape(1, 5, 32).image, draw_shape(1, 5, 32).image);
  EXPECT_NE(draw_shape(1, 5, 32).image, draw_shape(2, 5, 32).image);
  EXPECT_NE(draw_shape(1, 5, 32).image, draw_shape(1, 15, 32).image);
}

TEST(Shapes, LabelsAreBalanced) {
  for (int64_t index = 0; index < 30; ++index)
    EXPECT_EQ(draw_shape(1, index, 16).label, index % 10);
}

TEST(Shapes, EveryShapeCanBeSeen) {
  // Corners are background in nearly all images; enough pixels must differ from their median.
  for (int64_t index = 0; index < 200; ++index) {
    const Image image = draw_shape(1, index, 32).image;
    ASSERT_EQ(image.pixels.size(), 32u * 32 * 3);
    const auto corner = [&](size_t c) {
      std::array<int, 4> values{};
      size_t i = 0;
      for (size_t place : {0, 31, 31 * 32, 32 * 32 - 1}) values[i++] = image.pixels[place * 3 + c];
      std::ranges::sort(values);
      return (values[1] + values[2]) / 2;
    };
    const std::array<int, 3> background{corner(0), corner(1), corner(2)};
    int different = 0;
    for (size_t place = 0; place < 32 * 32; ++place) {
      double square = 0;
      for (size_t c = 0; c < 3; ++c)
        square += std::pow(image.pixels[place * 3 + c] - background[c], 2);
      different += square > 60 * 60;
    }
    EXPECT_GT(different, 30) << "image " << index;
  }
}

TEST(Shapes, RefusesSizesThatShowNothing) {
  expect_error(ErrorCode::usage, "7 pixels", [] { draw_shape(1, 0, 7); });
  expect_error(ErrorCode::usage, "5000 pixels", [] { draw_shape(1, 0, 5000); });
}

TEST(SynthData, HoldsTheDrawnImagesNormalisedAndChannelsFirst) {
  const MemoryImages data =
      draw_synth_data({.first = 30, .images = 25, .size_pixels = 16, .seed = 9, .threads = 3});
  EXPECT_EQ(data.count(), 25);
  EXPECT_EQ(data.fields()[1].classes, 10);
  EXPECT_EQ(data.class_names(), shape_names());
  EXPECT_EQ(data.fields()[0].shape, (std::vector<int64_t>{3, 16, 16}));
  for (int64_t sample = 0; sample < data.count(); ++sample) {
    const auto [image, label] = draw_shape(9, 30 + sample, 16);
    EXPECT_EQ(label_of(data, sample), label);
    const std::vector<float> input = input_of(data, sample);
    for (size_t c = 0; c < 3; ++c)
      for (size_t place = 0; place < 16 * 16; ++place)
        ASSERT_FLOAT_EQ(input[c * 256 + place],
                        (static_cast<float>(image.pixels[place * 3 + c]) / 255 - 0.5f) / 0.25f);
  }
}

TEST(SynthData, RefusesToBeEmpty) {
  expect_error(ErrorCode::usage, "0 images", [] { draw_synth_data({.images = 0}); });
}

TEST(MemoryImages, EachChannelHasItsNormalisation) {
  MemoryImages images(1, 1, 1, {"a"}, {.mean = {0, 0.5f, 1}, .deviation = {1, 0.5f, 0.25f}});
  images.set(0, {.width = 1, .height = 1, .channels = 3, .pixels = {0, 255, 51}}, 0);
  EXPECT_THAT(input_of(images, 0), testing::ElementsAre(0, 1, testing::FloatEq(-3.2f)));
}

TEST(MemoryImages, MoreThanTheMachineHoldsIsAMemoryError) {
  expect_error(ErrorCode::memory, "of memory of this machine",
               [] { MemoryImages(int64_t{1} << 40, 4096, 4096, {"a"}); });
}

TEST(MemoryImages, RefusesImagesThatDoNotFit) {
  MemoryImages images(2, 16, 16, {"a", "b"});
  const Image right = draw_shape(1, 0, 16).image;
  images.set(1, right, 1);
  EXPECT_EQ(label_of(images, 1), 1);
  expect_error(ErrorCode::bug, "does not fit", [&] { images.set(0, right, 2); });
  expect_error(ErrorCode::bug, "does not fit",
               [&] { images.set(0, draw_shape(1, 0, 8).image, 0); });
  expect_error(ErrorCode::bug, "sample 2", [&] { images.set(2, right, 0); });
}

}  // namespace
}  // namespace renkei::data
