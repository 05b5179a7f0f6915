#include "data/image/resample.h"

#include <cmath>

#include "base/philox.h"
#include "tests/data/expect_error.h"

namespace renkei::data {
namespace {

Image noise(int width, int height) {
  Image image{width, height, 3, {}};
  Random random(1, RandomUse::synth_image, 0, static_cast<uint64_t>(width * 1000 + height));
  for (int i = 0; i < width * height * 3; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  return image;
}

std::vector<float> run(const ResampleTask& task) {
  ResampleScratch scratch;
  std::vector<float> output(static_cast<size_t>(task.width * task.height * 3));
  resample(task, scratch, output);
  return output;
}

TEST(Resample, AgreesWithThePlainOne) {
  Random random(2, RandomUse::synth_image, 0, 0);
  for (int repeat = 0; repeat < 150; ++repeat) {
    const Image image =
        noise(1 + static_cast<int>(random.below(60)), 1 + static_cast<int>(random.below(60)));
    const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
    Window window{random.uniform(0, w * 0.5f), random.uniform(0, h * 0.5f), 0, 0};
    if (repeat % 2) window = {std::floor(window.x), std::floor(window.y), 0, 0};
    window.width = random.uniform(0.2f, 1) * (w - window.x);
    window.height = random.uniform(0.2f, 1) * (h - window.y);
    const ResampleTask task{.image = image,
                            .window = window,
                            .width = 1 + static_cast<int>(random.below(40)),
                            .height = 1 + static_cast<int>(random.below(40)),
                            .flip = repeat % 3 == 0,
                            .scale = {1, 0.5f, 2},
                            .bias = {0, 10, -3}};
    const auto fast = run(task);
    std::vector<float> plain(fast.size());
    resample_plainly(task, plain);
    for (size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], plain[i], 2e-3f) << repeat;
  }
}

TEST(Resample, AgreesWithResize) {
  const Image image = noise(50, 37);
  for (const auto& [width, height] : {std::pair{20, 20}, {50, 37}, {100, 80}, {1, 1}}) {
    const Image resized = resize(image, width, height);
    const auto numbers =
        run({.image = image, .window = {0, 0, 50, 37}, .width = width, .height = height});
    const size_t area = static_cast<size_t>(width * height);
    for (size_t i = 0; i < area; ++i)
      for (size_t c = 0; c < 3; ++c)
        ASSERT_NEAR(numbers[c * area + i], resized.pixels[3 * i + c], 0.51f);
  }
}

TEST(Resample, AWindowKeepsItsNeighboursOut) {
  // Black with one white column on either side of the window.
  Image image{12, 4, 3, std::vector<uint8_t>(12 * 4 * 3, 0)};
  for (int y = 0; y < 4; ++y)
    for (const int x : {2, 9})
      for (int c = 0; c < 3; ++c) image.pixels[static_cast<size_t>((y * 12 + x) * 3 + c)] = 255;
  for (const float number : run({.image = image, .window = {3, 0, 6, 4}, .width = 17, .height = 3}))
    EXPECT_EQ(number, 0);
}

TEST(Resample, FlipMirrorsColumns) {
  const Image image = noise(20, 10);
  ResampleTask task{.image = image, .window = {1, 1, 18, 8}, .width = 9, .height = 5};
  const auto plain = run(task);
  task.flip = true;
  const auto mirrored = run(task);
  for (size_t row = 0; row < 15; ++row)
    for (size_t x = 0; x < 9; ++x)
      ASSERT_NEAR(mirrored[row * 9 + x], plain[row * 9 + 8 - x], 1e-3f);
}

TEST(Resample, AWindowOutsideIsABug) {
  const Image image = noise(10, 10);
  for (const Window window : {Window{0, 0, 11, 10}, {5, 0, 6, 1}, {-1, 0, 5, 5}, {0, 0, 0, 5}})
    expect_error(ErrorCode::bug, "a window of",
                 [&] { run({.image = image, .window = window, .width = 4, .height = 4}); });
}

}  // namespace
}  // namespace renkei::data
