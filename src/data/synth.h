#pragma once

#include <filesystem>

#include "data/parallel.h"

namespace renkei::data {

struct SynthOptions {
  std::filesystem::path directory;
  int64_t train_images = 8000;
  int64_t test_images = 2000;
  int size_pixels = 32;
  uint64_t seed = 1;
  int threads = 0;  // 0: one per core
  int quality = 95;
  Progress progress = nullptr;
};

// Writes a data set of drawn shapes: DIRECTORY/train/CLASS/000123.jpg, DIRECTORY/test/CLASS/… and
// DIRECTORY/dataset.json. The number in a name is the index of the image; test images follow the
// training images. The content does not depend on `threads`. The directory appears complete or not
// at all: it is written as DIRECTORY.partial and renamed at the end.
void write_synth(const SynthOptions& options);

}  // namespace renkei::data
