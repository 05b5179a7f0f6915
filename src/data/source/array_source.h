#pragma once

#include "data/source/array_names.h"
#include "data/source/source.h"
#include "data/storage/storage.h"

namespace renkei::data {

struct ArraySourceOptions {
  std::string path;
  Part part = Part::train;
  std::string input = "auto";
  std::string label = "auto";
};

// Arrays whose first axis counts the samples; each is a field.
//   npy      FILE.npy, with the labels in another file: y….npy beside x….npy, labels.npy beside
//            images.npy, or the one that `label` names
//   npz      all in one zip archive; what is deflated is unpacked to a temporary file when needed
//   folder   all NAME.npy in a directory
// Null when the held-out part was asked for and there is none.
std::unique_ptr<Source> open_npy_source(const Storage& storage, const ArraySourceOptions& options);
std::unique_ptr<Source> open_npz_source(const Storage& storage, const ArraySourceOptions& options);
std::unique_ptr<Source> open_npy_folder(const Storage& storage, const ArraySourceOptions& options);

// The labels in an array of whole numbers, checked: none is below 0.
std::vector<int64_t> labels_from(ElementType type, std::string_view bytes, std::string_view name);

}  // namespace renkei::data
