#include "comm/buffer/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "comm/buffer/chunk_range.h"
#include "comm/collectives/exchange.h"

namespace renkei::comm::reference {
namespace {

void send_from_rank_0_to_all(Transport& transport, std::span<std::byte> bytes, const Call& call) {
  if (transport.rank() != 0) return receive_and_wait(transport, 0, bytes, Tag::reference, call);
  for (int to = 1; to < transport.size(); ++to)
    send_and_wait(transport, to, bytes, Tag::reference, call);
}

// How an element is read for arithmetic, and written back.
template <typename T>
struct Element {
  static T read(T value) { return value; }
  static T write(T value) { return value; }
};
template <>
struct Element<Half> {
  static float read(Half value) { return widened(value); }
  static Half write(float value) { return to_half(value); }
};
template <>
struct Element<BFloat16> {
  static float read(BFloat16 value) { return widened(value); }
  static BFloat16 write(float value) { return to_bfloat16(value); }
};

template <typename V>
V combined(V a, V b, Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      if constexpr (std::is_integral_v<V>)  // unsigned: whose overflow is defined
        return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      else
        return a + b;
    // b != b is true for NaN only; a NaN in a fails the other comparison and stays.
    case Reduction::max:
      return a < b || b != b ? b : a;
    case Reduction::min:
      return b < a || b != b ? b : a;
    default:  // their kernel is as plain as it could be here
      throw Error(ErrorCode::bug, fmt::format("there is no reference of {}", name_of(reduction)));
  }
}

// Calls body(T*) with the buffer's elements as what they are.
template <typename Body>
void with_elements(Buffer buffer, Body body) {
  switch (buffer.dtype) {
    case DType::f32:
      return body(reinterpret_cast<float*>(buffer.data));
    case DType::f64:
      return body(reinterpret_cast<double*>(buffer.data));
    case DType::f16:
      return body(reinterpret_cast<Half*>(buffer.data));
    case DType::bf16:
      return body(reinterpret_cast<BFloat16*>(buffer.data));
    case DType::i64:
      return body(reinterpret_cast<int64_t*>(buffer.data));
    case DType::u8:
      throw Error(ErrorCode::bug, "bytes have no arithmetic: u8 can be moved, not reduced");
    default:
      throw Error(ErrorCode::bug,
                  fmt::format("there is no reference for {}", name_of(buffer.dtype)));
  }
}

}  // namespace

float widened(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

float widened(Half value) {
  const int exponent = (value.bits >> 10) & 31, fraction = value.bits & 1023;
  float magnitude = 0;
  if (exponent == 31)
    magnitude =
        fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  else
    magnitude = std::ldexp(static_cast<float>(exponent ? fraction + 1024 : fraction),
                           std::max(exponent, 1) - 25);
  return value.bits & 0x8000 ? -magnitude : magnitude;
}

Half to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto half = [&](int bits) { return Half{static_cast<uint16_t>(sign | bits)}; };
  const float magnitude = std::abs(value);
  if (std::isnan(value)) return half(0x7E00);
  if (magnitude >= 65520) return half(0x7C00);  // halfway beyond the largest
  if (magnitude == 0) return half(0);
  const int exponent = std::max(std::ilogb(magnitude), -14);
  // In units of the last place, to nearest even; 2048 of them carry into the exponent by
  // themselves.
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return half((exponent + 14) * 1024 + units);
}

void reduce(Buffer into, ConstBuffer from, Reduction reduction) {
  if (into.count != from.count || into.dtype != from.dtype)
    throw Error(ErrorCode::bug,
                fmt::format("reduce of {} elements into {}", from.count, into.count));
  with_elements(into, [&]<typename T>(T* a) {
    const T* const b = reinterpret_cast<const T*>(from.data);
    for (size_t i = 0; i < into.count; ++i)
      a[i] = Element<T>::write(combined(Element<T>::read(a[i]), Element<T>::read(b[i]), reduction));
  });
}

void scale(Buffer buffer, double factor) {
  with_elements(buffer, [&]<typename T>(T* values) {
    for (size_t i = 0; i < buffer.count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        values[i] = static_cast<T>(std::nearbyint(static_cast<double>(values[i]) * factor));
      } else {
        const auto value = Element<T>::read(values[i]);
        values[i] = Element<T>::write(value * static_cast<decltype(value)>(factor));
      }
    }
  });
}

void barrier(Transport& transport, const Call& call) {
  const Call named = with_name(call, "reference barrier");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, {}, Tag::reference, named);
  } else {
    for (int from = 1; from < transport.size(); ++from)
      receive_and_wait(transport, from, {}, Tag::reference, named);
  }
  send_from_rank_0_to_all(transport, {}, named);
}

void broadcast(Transport& transport, Buffer buffer, int root, const Call& call) {
  const Call named = with_name(call, "reference broadcast");
  if (root != 0 && transport.rank() == root)
    send_and_wait(transport, 0, buffer.span(), Tag::reference, named);
  if (root != 0 && transport.rank() == 0)
    receive_and_wait(transport, root, buffer.span(), Tag::reference, named);
  send_from_rank_0_to_all(transport, buffer.span(), named);
}

void all_gather_v(Transport& transport, ConstBuffer mine, Buffer all,
                  std::span<const size_t> counts, const Call& call) {
  const Call named = with_name(call, "reference all_gather_v");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, mine.span(), Tag::reference, named);
  } else {
    std::copy_n(mine.data, mine.bytes(), all.data);
    size_t offset = counts[0];
    for (int from = 1; from < transport.size(); ++from) {
      const Buffer part = all.part(offset, counts[static_cast<size_t>(from)]);
      receive_and_wait(transport, from, part.span(), Tag::reference, named);
      offset += part.count;
    }
  }
  send_from_rank_0_to_all(transport, all.span(), named);
}

void all_gather(Transport& transport, ConstBuffer mine, Buffer all, const Call& call) {
  const std::vector<size_t> counts(static_cast<size_t>(transport.size()), mine.count);
  reference::all_gather_v(transport, mine, all, counts, with_name(call, "reference all_gather"));
}

void allreduce(Transport& transport, Buffer buffer, Reduction reduction, const Call& call) {
  const Call named = with_name(call, "reference allreduce");
  if (transport.rank() != 0) {
    send_and_wait(transport, 0, buffer.span(), Tag::reference, named);
  } else {
    std::vector<std::byte> bytes(buffer.bytes());
    const Buffer incoming(bytes.data(), buffer.count, buffer.dtype);
    for (int from = 1; from < transport.size(); ++from) {
      receive_and_wait(transport, from, bytes, Tag::reference, named);
      reference::reduce(buffer, incoming, reduction);
    }
    if (reduction == Reduction::mean && transport.size() > 1)
      reference::scale(buffer, 1.0 / transport.size());
  }
  send_from_rank_0_to_all(transport, buffer.span(), named);
}

Buffer reduce_scatter(Transport& transport, Buffer buffer, Reduction reduction, const Call& call) {
  reference::allreduce(transport, buffer, reduction, with_name(call, "reference reduce_scatter"));
  const Range range = chunk_range(buffer.count, transport.size(), transport.rank());
  return buffer.part(range.begin, range.size());
}

}  // namespace renkei::comm::reference
