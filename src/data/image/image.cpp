// Bilinear resizing. Seen from the source, an output pixel sits at centre c = (x + 1/2) s - 1/2,
// where s is the ratio of source to output size, and takes the source pixels around it with the
// weights of a triangle of half width max(1, s), normalised to sum 1. For s <= 1 that is plain
// bilinear interpolation; for s > 1 the triangle grows with s, because two neighbours alone would
// leave most of the source unseen and turn fine texture into noise. The filter is separable: rows
// first, then columns, O(max(1, s)) work per output value and pass.
#include "data/image/image.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace renkei::data {
namespace {

struct Taps {
  int first = 0;               // the first source pixel
  std::vector<float> weights;  // of first, first + 1, …
};

std::vector<Taps> make_taps(int source, int output) {
  const float scale = static_cast<float>(source) / static_cast<float>(output);
  const float half_width = std::max(1.0f, scale);
  std::vector<Taps> taps(static_cast<size_t>(output));
  for (int x = 0; x < output; ++x) {
    const float centre = (static_cast<float>(x) + 0.5f) * scale - 0.5f;
    const int first = std::max(0, static_cast<int>(std::ceil(centre - half_width)));
    const int last = std::min(source - 1, static_cast<int>(std::floor(centre + half_width)));
    Taps& tap = taps[static_cast<size_t>(x)];
    tap.first = first;
    float sum = 0;
    for (int pixel = first; pixel <= last; ++pixel) {
      const float distance = std::abs(static_cast<float>(pixel) - centre);
      tap.weights.push_back(std::max(0.0f, 1.0f - distance / half_width));
      sum += tap.weights.back();
    }
    for (float& weight : tap.weights) weight /= sum;
  }
  return taps;
}

}  // namespace

Image resize(const Image& image, int width, int height) {
  if (image.width < 1 || image.height < 1 || width < 1 || height < 1)
    throw Error(ErrorCode::usage,
                fmt::format("an image of {} x {} pixels cannot be resized to {} x {}", image.width,
                            image.height, width, height),
                "every side needs at least one pixel");
  if (width == image.width && height == image.height) return image;

  const auto channels = static_cast<size_t>(image.channels);
  const auto columns = make_taps(image.width, width);
  const auto rows = make_taps(image.height, height);
  const size_t source_stride = static_cast<size_t>(image.width) * channels;
  const size_t stride = columns.size() * channels;

  std::vector<float> narrowed(static_cast<size_t>(image.height) * stride);
  for (size_t y = 0; y < static_cast<size_t>(image.height); ++y)
    for (size_t x = 0; x < columns.size(); ++x)
      for (size_t c = 0; c < channels; ++c) {
        const uint8_t* source = &image.pixels[y * source_stride + c];
        float sum = 0;
        for (size_t k = 0; k < columns[x].weights.size(); ++k)
          sum += columns[x].weights[k] *
                 source[(static_cast<size_t>(columns[x].first) + k) * channels];
        narrowed[y * stride + x * channels + c] = sum;
      }

  Image result{width, height, image.channels, std::vector<uint8_t>(rows.size() * stride)};
  for (size_t y = 0; y < rows.size(); ++y)
    for (size_t x = 0; x < stride; ++x) {
      float sum = 0;
      for (size_t k = 0; k < rows[y].weights.size(); ++k)
        sum += rows[y].weights[k] * narrowed[(static_cast<size_t>(rows[y].first) + k) * stride + x];
      result.pixels[y * stride + x] = static_cast<uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
    }
  return result;
}

}  // namespace renkei::data
