#include "data/image/transform.h"

#include <algorithm>

#include "data/image/decode.h"

namespace renkei::data {
namespace {

struct Jitter {
  float brightness, contrast, saturation;
};

float grey_of(const float* pixel, size_t area) {
  return 0.299f * pixel[0] + 0.587f * pixel[area] + 0.114f * pixel[2 * area];
}

// On numbers from 0 to 1, in place, followed by the normalisation. As in torchvision each step ends
// within 0 … 1 and contrast is relative to the mean grey; their order is fixed.
void jitter_and_normalise(const Jitter& jitter, const Normalisation& normalisation,
                          std::span<float> output) {
  const size_t area = output.size() / 3;
  const auto limit = [](float value) { return std::clamp(value, 0.0f, 1.0f); };
  double sum = 0;
  for (size_t i = 0; i < area; ++i) {
    for (size_t c = 0; c < 3; ++c)
      output[c * area + i] = limit(output[c * area + i] * jitter.brightness);
    sum += grey_of(&output[i], area);
  }
  const float offset = static_cast<float>(sum / static_cast<double>(area)) * (1 - jitter.contrast);
  for (size_t i = 0; i < area; ++i) {
    for (size_t c = 0; c < 3; ++c)
      output[c * area + i] = limit(output[c * area + i] * jitter.contrast + offset);
    const float grey = grey_of(&output[i], area) * (1 - jitter.saturation);
    for (size_t c = 0; c < 3; ++c) {
      const float value = limit(output[c * area + i] * jitter.saturation + grey);
      output[c * area + i] = (value - normalisation.mean[c]) / normalisation.deviation[c];
    }
  }
}

// What is random about one image. Always drawn in the same order, so that a change of one option
// does not change the others' numbers.
struct Choice {
  Region region;
  bool flip;
  Jitter jitter;
};

Choice choose(const TransformOptions& options, ImageExtent image, Random& random) {
  Choice choice{};
  choice.flip = options.flip && random.uniform() < 0.5f;
  const auto factor = [&] { return random.uniform(1 - options.jitter, 1 + options.jitter); };
  if (options.jitter > 0) choice.jitter = {factor(), factor(), factor()};
  choice.region = choose_region(options.crop, image, {options.width, options.height}, random);
  return choice;
}

void finish(const Choice& choice, const TransformOptions& options, Window window,
            TransformScratch& scratch, std::span<float> output) {
  ResampleTask task{.image = scratch.image,
                    .window = window,
                    .width = options.width,
                    .height = options.height,
                    .flip = choice.flip};
  for (size_t c = 0; c < 3; ++c) {
    const bool later = options.jitter > 0;
    const Normalisation& normalisation = options.normalisation;
    task.scale[c] = 1.0f / 255 / (later ? 1 : normalisation.deviation[c]);
    task.bias[c] = later ? 0 : -normalisation.mean[c] / normalisation.deviation[c];
  }
  resample(task, scratch.resample, output);
  if (options.jitter > 0) jitter_and_normalise(choice.jitter, options.normalisation, output);
}

}  // namespace

int choose_denominator(const Region& region, ImageExtent output) {
  int denominator = 1;
  while (denominator < 8 && region.width >= output.width * denominator * 2 &&
         region.height >= output.height * denominator * 2)
    denominator *= 2;
  return denominator;
}

void transform_image(std::string_view bytes, std::string_view name, const TransformOptions& options,
                     Random random, TransformScratch& scratch, std::span<float> output) {
  const Choice choice = choose(options, read_image_extent(bytes, name), random);
  const Region& region = choice.region;
  const int denominator =
      decodes_in_part(bytes) ? choose_denominator(region, {options.width, options.height}) : 1;
  const Corner corner = decode_image_region(bytes, name, region, denominator, scratch.image);
  // Where the region is in what was decoded. At a smaller scale its edges fall between pixels, and
  // the image may end up to one pixel early.
  const auto scaled = [&](int begin, int length, int origin, int available) {
    const float from =
        static_cast<float>(begin) / static_cast<float>(denominator) - static_cast<float>(origin);
    const float size = static_cast<float>(length) / static_cast<float>(denominator);
    return std::pair{from, std::min(size, static_cast<float>(available) - from)};
  };
  const auto [x, width] = scaled(region.x, region.width, corner.x, scratch.image.width);
  const auto [y, height] = scaled(region.y, region.height, corner.y, scratch.image.height);
  finish(choice, options, {x, y, width, height}, scratch, output);
}

void transform_pixels(std::string_view pixels, ImageExtent extent, int channels,
                      const TransformOptions& options, Random random, TransformScratch& scratch,
                      std::span<float> output) {
  const Choice choice = choose(options, extent, random);
  copy_pixels(pixels, extent, channels, scratch.image);
  finish(choice, options,
         {static_cast<float>(choice.region.x), static_cast<float>(choice.region.y),
          static_cast<float>(choice.region.width), static_cast<float>(choice.region.height)},
         scratch, output);
}

}  // namespace renkei::data
