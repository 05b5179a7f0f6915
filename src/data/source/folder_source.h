#pragma once

#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

struct FolderSourceOptions {
  std::string root;
  int threads = 0;
};

// root/CLASS/*.jpg (.jpeg, .png): one file per sample, opened at each read. Classes are numbered in
// the order of their names, samples are sorted by class, then by file name. Other files are left
// alone. A class folder without images keeps its number, so that a small test set has the labels of
// its training set.
std::unique_ptr<Source> open_folder_source(std::shared_ptr<const Storage> storage,
                                           const FolderSourceOptions& options);

}  // namespace renkei::data
