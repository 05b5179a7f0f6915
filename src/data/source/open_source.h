#pragma once

#include "data/source/array_names.h"
#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

struct OpenOptions {
  std::string path;  // a file or a directory
  Part part = Part::train;
  std::string input = "auto";  // names of arrays, for npz, HDF5 and npy
  std::string label = "auto";
  int threads = 0;
};

// Looks at what is there, not at how it is called:
//   a file        tar, npy, npz, HDF5 or TFRecord, by its first bytes
//   a directory   of tar shards, of TFRecord or .npy files, or of one folder of images per class;
//   or
//                 one that has these in train/ and, held out, in test/, val/ or validation/; shards
//                 whose names start with test or val are held out, too
// Null when the held-out part was asked for and there is none.
std::unique_ptr<Source> open_source(std::shared_ptr<const Storage> storage,
                                    const OpenOptions& options);

}  // namespace renkei::data
