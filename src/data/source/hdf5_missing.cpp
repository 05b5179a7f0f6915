// The twin of hdf5_source.cpp for builds without libhdf5.
#include "data/source/hdf5_source.h"

namespace renkei::data {

std::unique_ptr<Source> open_hdf5_source(const Storage&, const ArraySourceOptions&) {
  throw Error(ErrorCode::usage, "this renkei was built without HDF5 support",
              "install libhdf5-dev and configure with -DRENKEI_HDF5=ON");
}

}  // namespace renkei::data
