#pragma once

#include <filesystem>

#include "data/memory_images.h"
#include "data/parallel.h"

namespace renkei::data {

struct ImageFolderOptions {
  std::filesystem::path root;
  int height = 32;  // images of another size are resized
  int width = 32;
  int threads = 0;  // 0: one per core
  Progress progress = nullptr;
};

// Reads root/CLASS/*.jpg (or .jpeg). Classes are numbered in the order of their names, samples are
// sorted by class, then by file name. Other files are left alone. A class folder without images
// keeps its number, so that a small test set has the labels of its training set.
MemoryImages load_image_folder(const ImageFolderOptions& options);

}  // namespace renkei::data
