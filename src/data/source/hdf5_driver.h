#pragma once

#include <hdf5.h>

#include <exception>
#include <memory>
#include <string>

#include "data/storage/byte_file.h"

namespace renkei::data {

// A file as the HDF5 library reads it. What goes wrong below the library (a disk, object storage)
// comes out of it as a code without a reason: the reason is kept here.
struct Hdf5Bytes {
  std::shared_ptr<const ByteFile> file;
  std::exception_ptr failure = nullptr;

  // The library asks for the same small pieces again and again.
  std::string block = {};
  int64_t block_begin = 0;
};

// Opens a file through ByteFile instead of the library's own input, so that HDF5 files may be
// wherever other data sets are. Negative: it is none. `bytes` must outlive the handle.
hid_t open_hdf5_file(Hdf5Bytes& bytes);

}  // namespace renkei::data
