#pragma once

#include "data/memory_images.h"
#include "data/parallel.h"

namespace renkei::data {

struct SynthDataOptions {
  int64_t first = 0;  // held-out images start where the training images end
  int64_t images = 0;
  int size_pixels = 32;
  uint64_t seed = 1;
  int threads = 0;  // 0: one per core
  Normalisation normalisation = {};
  Progress progress = nullptr;
};

// Drawn shapes straight into memory: the images `first` … `first + images - 1` that write_synth
// would write with this seed, before JPEG compression.
MemoryImages draw_synth_data(const SynthDataOptions& options);

}  // namespace renkei::data
