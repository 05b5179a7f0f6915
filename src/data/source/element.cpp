#include "data/source/element.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace renkei::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as little endian");

struct Half {
  uint16_t bits;
};

template <typename T>
T load(const char* from, bool swap) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

// Calls `use` with a value of the C++ type behind `type`.
template <typename Use>
auto with_type(ElementType type, Use use) {
  const bool integer = type.kind != ElementKind::floating;
  const bool is_signed = type.kind == ElementKind::signed_integer;
  switch (type.bytes) {
    case 1:
      if (integer) return is_signed ? use(int8_t{}) : use(uint8_t{});
      break;
    case 2:
      if (!integer) return use(Half{});
      return is_signed ? use(int16_t{}) : use(uint16_t{});
    case 4:
      if (!integer) return use(float{});
      return is_signed ? use(int32_t{}) : use(uint32_t{});
    case 8:
      if (!integer) return use(double{});
      return is_signed ? use(int64_t{}) : use(uint64_t{});
  }
  throw Error(ErrorCode::bug, fmt::format("numbers of {} bytes", type.bytes));
}

}  // namespace

int64_t ArrayLayout::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool fits_in_memory_range(std::span<const int64_t> sides, int64_t unit) {
  int64_t product = unit;
  for (const int64_t side : sides) {
    if (side < 0) return false;
    if (side > 0 && product > (int64_t{1} << 62) / side) return false;
    product *= side;
  }
  return true;
}

DType dtype_of(ElementType type) {
  switch (type.kind) {
    case ElementKind::boolean:
      return DType::boolean;
    case ElementKind::floating:
      return type.bytes == 2 ? DType::f16 : type.bytes == 4 ? DType::f32 : DType::f64;
    case ElementKind::unsigned_integer:
      return type.bytes == 1 ? DType::u8 : type.bytes == 2 ? DType::i32 : DType::i64;
    case ElementKind::signed_integer:
      break;
  }
  return type.bytes == 1   ? DType::i8
         : type.bytes == 2 ? DType::i16
         : type.bytes == 4 ? DType::i32
                           : DType::i64;
}

void convert_elements(ElementType type, std::string_view bytes, std::span<std::byte> numbers) {
  const auto width = static_cast<size_t>(bytes_of(dtype_of(type)));
  const auto stored_width = static_cast<size_t>(type.bytes);
  if (bytes.size() / stored_width != numbers.size() / width || bytes.size() % stored_width != 0)
    throw Error(ErrorCode::bug, fmt::format("{} bytes are not {} numbers of {} bytes", bytes.size(),
                                            numbers.size() / width, type.bytes));
  if (width == stored_width && (!type.big_endian || width == 1)) {
    std::ranges::copy(std::as_bytes(std::span(bytes)), numbers.begin());
    return;
  }
  with_type(type, [&](auto kind) {
    using T = decltype(kind);
    using Wide = std::conditional_t<std::is_same_v<T, uint16_t>, int32_t,
                                    std::conditional_t<std::is_same_v<T, uint32_t>, int64_t, T>>;
    for (size_t i = 0; i * sizeof(Wide) < numbers.size(); ++i) {
      const auto value = static_cast<Wide>(load<T>(bytes.data() + i * sizeof(T), type.big_endian));
      std::memcpy(&numbers[i * sizeof(Wide)], &value, sizeof(Wide));
    }
  });
}

int64_t integer_at(ElementType type, std::string_view bytes, int64_t index) {
  return with_type(type, [&](auto kind) -> int64_t {
    using T = decltype(kind);
    const auto value =
        load<T>(bytes.data() + static_cast<size_t>(index) * sizeof(T), type.big_endian);
    if constexpr (!std::is_integral_v<T>)
      throw Error(ErrorCode::bug, "an array of other numbers was asked for a whole one");
    else
      return static_cast<int64_t>(value);
  });
}

}  // namespace renkei::data
