#pragma once

#include "data/source/source.h"

namespace renkei::data {

struct SynthSourceOptions {
  int64_t first = 0;  // index of the first image
  int64_t images = 0;
  int width = 32;
  int height = 32;
  uint64_t seed = 1;
  int quality = 95;
};

// Drawn shapes as JPEG files that stand nowhere: drawn when they are read. For packing data sets of
// any size.
std::unique_ptr<Source> make_synth_source(const SynthSourceOptions& options);

}  // namespace renkei::data
