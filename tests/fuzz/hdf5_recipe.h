#pragma once

#include <string>
#include <string_view>

namespace renkei::data {

// An HDF5 file whose names, types, shapes, layouts and filters are chosen by the bytes of `recipe`:
// sound for the library, and as odd as it allows. What is damaged below that is the library's own
// affair.
std::string make_hdf5_file(std::string_view recipe);

}  // namespace renkei::data
