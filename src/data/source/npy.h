#pragma once

#include <string_view>

#include "data/source/element.h"
#include "data/storage/byte_file.h"

namespace renkei::data {

// The header of a .npy file: numbers in C order that start at `data_offset`.
struct NpyHeader {
  ElementType type;
  std::vector<int64_t> shape;
  int64_t data_offset = 0;
};

// Of a file, or of the `length` bytes at `offset` in one (a member of an npz). Fortran order,
// structured and text types are data Errors; so is an array that is larger than its place.
NpyHeader read_npy_header(const ByteFile& file, int64_t offset, int64_t length);
NpyHeader parse_npy_header(std::string_view bytes, std::string_view name);
// Of the first bytes of a file of `length`.
NpyHeader parse_npy_head(std::string_view head, std::string_view name, int64_t length);

std::string make_npy_header(ElementType type, const std::vector<int64_t>& shape);

bool looks_like_npy(std::string_view bytes);

}  // namespace renkei::data
