#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/field.h"

namespace renkei::data {

// The types of numbers in npy and HDF5 files.
enum class ElementKind { unsigned_integer, signed_integer, floating, boolean };

struct ElementType {
  ElementKind kind = ElementKind::unsigned_integer;
  int bytes = 1;  // 1, 2, 4, 8; a floating one has at least 2
  bool big_endian = false;

  bool operator==(const ElementType&) const = default;
};

constexpr ElementType kByteElement{};

// One sample of a source of numbers, in C order.
struct ArrayLayout {
  ElementType type;
  std::vector<int64_t> shape;  // without the axis of the samples

  int64_t elements() const;
  int64_t bytes() const { return elements() * type.bytes; }
  bool operator==(const ArrayLayout&) const = default;
};

// Whether the product of the sides, times `unit`, stays below 2^62. Headers may claim anything.
bool fits_in_memory_range(std::span<const int64_t> sides, int64_t unit);

// The type that they have in memory: the same, but unsigned ones of 2 and 4 bytes become signed
// ones of twice as many, and those of 8 bytes are taken as signed ones.
DType dtype_of(ElementType type);
// As many as `numbers` has, of dtype_of(type).
void convert_elements(ElementType type, std::string_view bytes, std::span<std::byte> numbers);
// Of whole numbers.
int64_t integer_at(ElementType type, std::string_view bytes, int64_t index);

}  // namespace renkei::data
