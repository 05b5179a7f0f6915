// Tensors that lie in a file, by name: what .pt2 files, safetensors files and state dicts have in
// common. Nothing is read before it is asked for, so that a model larger than memory can be planned
// and each rank reads only what it keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/storage/byte_file.h"
#include "program/program.h"

namespace renkei::capture {

// Fills `into` with the bytes from `begin` on of the tensor's elements in row-major order. May be
// called by many threads at once; throws data Errors.
using ReadBytes = std::function<void(int64_t begin, std::span<char> into)>;

struct StoredTensor {
  program::DType dtype = program::DType::f32;
  std::vector<int64_t> sizes = {};
  ReadBytes read = {};  // empty: the file has no values, as of a model that was made on "meta"

  bool has_values() const { return static_cast<bool>(read); }
  int64_t bytes() const;
  std::string read_all() const;
};

using NamedTensors = std::map<std::string, StoredTensor, std::less<>>;

// How elements lie in a part of a file, as PyTorch's tensors lie in their storage.
struct StridedBytes {
  std::shared_ptr<const data::ByteFile> file;
  int64_t begin = 0;                  // of the storage in the file
  int64_t size = 0;                   // of the storage, in bytes
  int64_t first = 0;                  // the element in it that the tensor begins with
  std::vector<int64_t> strides = {};  // of each dimension, in elements
};

// The number of elements, or nothing where a size is negative or the bytes are beyond 64 bits.
std::optional<int64_t> count_elements(std::span<const int64_t> sizes, program::DType dtype);

// Those of elements that lie one behind the other, the last dimension innermost.
std::vector<int64_t> row_major_strides(std::span<const int64_t> sizes);
// Dimensions of one element may have any stride.
bool is_row_major(std::span<const int64_t> sizes, std::span<const int64_t> strides);

// For those who write a tensor: a data Error where there are no values to write.
void require_values(const std::string& name, const StoredTensor& tensor);

// Throws a data Error that begins with `place` where the elements do not lie inside of the storage.
StoredTensor stored_tensor(program::DType dtype, std::vector<int64_t> sizes, StridedBytes where,
                           const std::string& place);

}  // namespace renkei::capture
