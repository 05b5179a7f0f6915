#include "data/synth_data.h"

#include "base/error.h"
#include "data/shapes.h"

namespace renkei::data {

MemoryImages draw_synth_data(const SynthDataOptions& options) {
  if (options.images < 1 || options.first < 0)
    throw Error(ErrorCode::usage, fmt::format("a synthetic data set of {} images", options.images),
                "choose at least 1 image");
  MemoryImages images(options.images, options.size_pixels, options.size_pixels, shape_names(),
                      options.normalisation);
  parallel_for(
      options.images, options.threads,
      [&](int64_t sample) {
        const auto drawn = draw_shape(options.seed, options.first + sample, options.size_pixels);
        images.set(sample, drawn.image, drawn.label);
      },
      options.progress);
  return images;
}

}  // namespace renkei::data
