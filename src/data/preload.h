#pragma once

#include "data/memory_images.h"
#include "data/parallel.h"
#include "data/source/source.h"

namespace renkei::data {

struct PreloadOptions {
  int height = 32;  // images of another size are resized
  int width = 32;
  int threads = 0;  // 0: one per core
  Normalisation normalisation = {};
  Progress progress = nullptr;
};

// Decodes all inputs of a source of labelled images into memory: for small data sets, which would
// otherwise be decoded again in every epoch.
MemoryImages preload_images(const Source& source, const PreloadOptions& options);

}  // namespace renkei::data
