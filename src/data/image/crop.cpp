#include "data/image/crop.h"

#include <algorithm>
#include <cmath>

namespace renkei::data {
namespace {

Region centred(ImageExtent image, double width, double height) {
  const int w = std::clamp(static_cast<int>(std::lround(width)), 1, image.width);
  const int h = std::clamp(static_cast<int>(std::lround(height)), 1, image.height);
  return {(image.width - w) / 2, (image.height - h) / 2, w, h};
}

// The largest rectangle with these sides that fits, times `share`.
Region centred_with_ratio(ImageExtent image, double ratio, double share) {
  const double width = std::min<double>(image.width, image.height * ratio);
  return centred(image, width * share, width / ratio * share);
}

Region random_region(ImageExtent image, Random& random) {
  const double area = static_cast<double>(image.width) * image.height;
  constexpr double kLowest = 3.0 / 4, kHighest = 4.0 / 3;
  // Nearly always the first or second try fits.
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = double{random.uniform(0.08f, 1.0f)} * area;
    const double ratio =
        std::exp(std::log(kLowest) + random.uniform() * (std::log(kHighest) - std::log(kLowest)));
    const int width = static_cast<int>(std::lround(std::sqrt(share * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(share / ratio)));
    const float x = random.uniform(), y = random.uniform();
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const auto place = [](float at, int room) {
      return std::min(room, static_cast<int>(at * static_cast<float>(room + 1)));
    };
    return {place(x, image.width - width), place(y, image.height - height), width, height};
  }
  const double ratio = static_cast<double>(image.width) / image.height;
  return centred_with_ratio(image, std::clamp(ratio, kLowest, kHighest), 1);
}

}  // namespace

Region choose_region(Crop crop, ImageExtent image, ImageExtent output, Random& random) {
  switch (crop) {
    case Crop::random:
      return random_region(image, random);
    case Crop::centre:
      return centred_with_ratio(image, static_cast<double>(output.width) / output.height,
                                224.0 / 256);
    case Crop::whole:
      break;
  }
  return {0, 0, image.width, image.height};
}

}  // namespace renkei::data
