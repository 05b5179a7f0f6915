// Element types that collectives know, and buffers of them. Algorithms move and reduce buffers
// without knowing the type; only the kernels in reduce.h do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace renkei::comm {

// u8 are bytes, which can be moved but not reduced; uint8 are numbers. A boolean is a byte, 0 or 1.
enum class DType : uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i64,
  u8,
  i32,
  i16,
  i8,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean
};

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::uint64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::uint32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::uint16:
      return 2;
    case DType::u8:
    case DType::i8:
    case DType::uint8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype);  // "f32"

// 16-bit floats as they lie in memory; arithmetic on them is done in f32 by the kernels.
struct Half {
  uint16_t bits = 0;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;
};

template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::byte>() {
  return DType::u8;
}

// `count` elements of one type. Does not own them. A buffer without data stands for elements that
// nobody looks at: collectives send as many messages for it, of the same sizes, but nothing is
// copied or reduced. So what a collective of 1 GiB among thousands of ranks would do fits one
// process.
struct Buffer {
  std::byte* data = nullptr;
  size_t count = 0;
  DType dtype = DType::f32;

  Buffer() = default;
  Buffer(std::byte* data, size_t count, DType dtype) : data(data), count(count), dtype(dtype) {}
  template <typename T>
  Buffer(std::span<T> elements)  // NOLINT: a span of elements is a buffer
      : data(reinterpret_cast<std::byte*>(elements.data())),
        count(elements.size()),
        dtype(dtype_of<T>()) {}

  size_t bytes() const { return count * size_of(dtype); }
  std::span<std::byte> span() const { return {data, bytes()}; }
  Buffer part(size_t first, size_t elements) const {
    return {data ? data + first * size_of(dtype) : nullptr, elements, dtype};
  }
};

}  // namespace renkei::comm
