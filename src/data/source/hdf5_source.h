#pragma once

#include "data/source/array_source.h"

namespace renkei::data {

// An HDF5 dataset whose first axis counts the samples, and another one of labels, or none; names as
// in npz. Contiguous datasets, and chunked ones without a filter whose chunks hold whole samples,
// are read at their place in the file; others through the library, which does one thing at a time.
// Builds without HDF5 throw a usage Error that says how to get it. Null when the held-out part was
// asked for and there is none.
std::unique_ptr<Source> open_hdf5_source(const Storage& storage, const ArraySourceOptions& options);

}  // namespace renkei::data
