#include "comm/buffer/reduce_plain.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace renkei::comm {
namespace {

constexpr size_t kBlock = 1024;  // elements, so that a block stays in the first-level cache

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

bool is_bitwise(Reduction reduction) {
  return reduction == Reduction::bit_and || reduction == Reduction::bit_or ||
         reduction == Reduction::bit_xor;
}

// Of booleans, or and and; their bytes are 0 or 1.
Reduction of_booleans(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::max:
      return Reduction::bit_or;
    case Reduction::product:
    case Reduction::min:
      return Reduction::bit_and;
    default:
      return reduction;
  }
}

// Wraps around: unsigned numbers do, and signed ones have the same bits.
template <typename T>
T wrapped(uint64_t value) {
  return static_cast<T>(value);
}

template <typename T, typename Combine>
void combine_block(T* sum, const T* more, size_t count, Combine combine) {
  for (size_t i = 0; i < count; ++i) sum[i] = combine(sum[i], more[i]);
}

template <typename T>
void combine_blocks(T* sum, const T* more, size_t count, Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return combine_block(sum, more, count, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return wrapped<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
          return a + b;
      });
    case Reduction::product:
      return combine_block(sum, more, count, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return wrapped<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
          return a * b;
      });
    case Reduction::max:
      return combine_block(sum, more, count, [](T a, T b) { return a < b ? b : a; });
    case Reduction::min:
      return combine_block(sum, more, count, [](T a, T b) { return b < a ? b : a; });
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor:
      if constexpr (std::is_integral_v<T>) {
        if (reduction == Reduction::bit_and)
          return combine_block(sum, more, count, [](T a, T b) { return static_cast<T>(a & b); });
        if (reduction == Reduction::bit_or)
          return combine_block(sum, more, count, [](T a, T b) { return static_cast<T>(a | b); });
        return combine_block(sum, more, count, [](T a, T b) { return static_cast<T>(a ^ b); });
      }
  }
}

// load(block, source, first, count) and store(place, first, block, count) say how elements become
// numbers of type T and back.
template <typename T, typename Load, typename Store>
void run(Buffer into, std::span<std::byte* const> copies, std::span<const std::byte* const> sources,
         Reduction reduction, Load load, Store store) {
  std::array<T, kBlock> sum, more;
  for (size_t first = 0; first < into.count; first += kBlock) {
    const size_t count = std::min(kBlock, into.count - first);
    load(sum.data(), sources[0], first, count);
    for (size_t s = 1; s < sources.size(); ++s) {
      load(more.data(), sources[s], first, count);
      combine_blocks(sum.data(), more.data(), count, reduction);
    }
    store(into.data, first, sum.data(), count);
    for (std::byte* const copy : copies) store(copy, first, sum.data(), count);
  }
}

template <typename T>
void run_as(Buffer into, std::span<std::byte* const> copies,
            std::span<const std::byte* const> sources, Reduction reduction) {
  run<T>(
      into, copies, sources, reduction,
      [](T* block, const std::byte* source, size_t first, size_t count) {
        std::memcpy(block, source + first * sizeof(T), count * sizeof(T));
      },
      [](std::byte* place, size_t first, const T* block, size_t count) {
        std::memcpy(place + first * sizeof(T), block, count * sizeof(T));
      });
}

// 16-bit floats, in f32.
void run_widened(Buffer into, std::span<std::byte* const> copies,
                 std::span<const std::byte* const> sources, Reduction reduction) {
  const DType narrow = into.dtype;
  const auto at = [narrow](const std::byte* place, size_t first, size_t count) {
    return Buffer(const_cast<std::byte*>(place) + first * size_of(narrow), count, narrow);
  };
  run<float>(
      into, copies, sources, reduction,
      [&](float* block, const std::byte* source, size_t first, size_t count) {
        convert(Buffer(std::span(block, count)), at(source, first, count));
      },
      [&](std::byte* place, size_t first, const float* block, size_t count) {
        convert(at(place, first, count), Buffer(std::span(const_cast<float*>(block), count)));
      });
}

}  // namespace

bool is_reduced_plainly(DType dtype, Reduction reduction) {
  const bool has_kernel = is_float(dtype) || dtype == DType::i64;
  return !has_kernel || is_bitwise(reduction) || reduction == Reduction::product;
}

void check_reduction(DType dtype, Reduction reduction) {
  if (dtype == DType::u8)
    throw Error(ErrorCode::usage, "bytes have no arithmetic: u8 can be moved, not reduced");
  if (is_float(dtype) && is_bitwise(reduction))
    throw Error(ErrorCode::usage,
                fmt::format("there is no {} of {}", name_of(reduction), name_of(dtype)),
                "it is for integers and booleans");
  if (reduction == Reduction::mean && !is_float(dtype) && dtype != DType::i64)
    throw Error(ErrorCode::usage, fmt::format("a mean of {} would be rounded", name_of(dtype)),
                "sum them, and divide as you mean it");
}

void reduce_plainly(Buffer into, std::span<std::byte* const> copies,
                    std::span<const std::byte* const> sources, Reduction reduction) {
  check_reduction(into.dtype, reduction);
  const auto run_for = [&]<typename T>(T /*unused*/) {
    run_as<T>(into, copies, sources, reduction);
  };
  switch (into.dtype) {
    case DType::f32:
      return run_for(float());
    case DType::f64:
      return run_for(double());
    case DType::f16:
    case DType::bf16:
      return run_widened(into, copies, sources, reduction);
    case DType::i64:
      return run_for(int64_t());
    case DType::i32:
      return run_for(int32_t());
    case DType::i16:
      return run_for(int16_t());
    case DType::i8:
      return run_for(int8_t());
    case DType::uint8:
      return run_for(uint8_t());
    case DType::uint16:
      return run_for(uint16_t());
    case DType::uint32:
      return run_for(uint32_t());
    case DType::uint64:
      return run_for(uint64_t());
    case DType::boolean:
      return run_as<uint8_t>(into, copies, sources, of_booleans(reduction));
    case DType::u8:
      return;
  }
}

}  // namespace renkei::comm
