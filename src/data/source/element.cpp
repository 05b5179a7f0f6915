#include "data/source/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace renkei::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as little endian");

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const int exponent = (half >> 10) & 31;
  const uint32_t fraction = half & 1023;
  float value = 0;
  if (exponent == 31)
    value = fraction ? std::nanf("") : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(fraction), -24);
  else
    value = std::ldexp(static_cast<float>(fraction | 1024), exponent - 25);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

struct Half {
  uint16_t bits;
  explicit operator float() const { return half_to_float(bits); }
  explicit operator int64_t() const {
    const float value = half_to_float(bits);
    return std::isfinite(value) ? static_cast<int64_t>(value) : -1;
  }
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

void convert_to_floats(ElementType type, std::string_view bytes, std::span<float> numbers) {
  if (bytes.size() != numbers.size() * static_cast<size_t>(type.bytes))
    throw Error(ErrorCode::bug, fmt::format("{} bytes are not {} numbers of {} bytes", bytes.size(),
                                            numbers.size(), type.bytes));
  with_type(type, [&](auto kind) {
    using T = decltype(kind);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(load<T>(bytes.data() + i * sizeof(T), type.big_endian));
  });
}

int64_t integer_at(ElementType type, std::string_view bytes, int64_t index) {
  return with_type(type, [&](auto kind) {
    using T = decltype(kind);
    const auto value =
        load<T>(bytes.data() + static_cast<size_t>(index) * sizeof(T), type.big_endian);
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(value) < T{1e15} ? static_cast<int64_t>(value) : int64_t{-1};
    else
      return static_cast<int64_t>(value);
  });
}

}  // namespace renkei::data
