#pragma once

#include <type_traits>

#include "comm/agreement.h"
#include "comm/buffer/dtype.h"
#include "comm/transport/transport.h"

namespace renkei::comm {

// A buffer that is only read. Spans of constant or other elements and buffers convert to it.
struct ConstBuffer {
  const std::byte* data = nullptr;
  size_t count = 0;
  DType dtype = DType::f32;

  template <typename T, size_t N>
  ConstBuffer(std::span<T, N> elements)  // NOLINT: a span of elements is a buffer
      : data(reinterpret_cast<const std::byte*>(elements.data())),
        count(elements.size()),
        dtype(dtype_of<std::remove_const_t<T>>()) {}
  ConstBuffer(Buffer buffer)  // NOLINT: may be read as well
      : data(buffer.data), count(buffer.count), dtype(buffer.dtype) {}

  ConstBuffer(const std::byte* data, size_t count, DType dtype)
      : data(data), count(count), dtype(dtype) {}

  size_t bytes() const { return count * size_of(dtype); }
  std::span<const std::byte> span() const { return {data, bytes()}; }
  ConstBuffer part(size_t first, size_t elements) const {
    return {data ? data + first * size_of(dtype) : nullptr, elements, dtype};
  }
};

// Every rank ends with the contributions of all ranks, in rank order: those of rank r are the r-th
// part of `all`. `mine` may be that very part of `all`, and is then not copied.
void all_gather(Transport& transport, ConstBuffer mine, Buffer all, const Call& call = {},
                Check check = Check::agreement);

// The same with counts[r] elements from rank r. All ranks must give the same counts.
void all_gather_v(Transport& transport, ConstBuffer mine, Buffer all,
                  std::span<const size_t> counts, const Call& call = {},
                  Check check = Check::agreement);

}  // namespace renkei::comm
