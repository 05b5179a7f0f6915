#include "comm/reduce.h"

#include <cstdint>
#include <type_traits>

#include "base/error.h"

namespace renkei::comm {
namespace {

template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // whose overflow is defined
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// b != b is true for NaN only; a NaN in a fails the other comparison and stays.
template <typename T>
T larger(T a, T b) {
  return a < b || b != b ? b : a;
}

template <typename T>
T smaller(T a, T b) {
  return b < a || b != b ? b : a;
}

template <typename T, typename Operation>
void combine(std::span<T> into, std::span<const T> from, Operation operation) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = operation(into[i], from[i]);
}

}  // namespace

template <typename T>
void reduce(std::span<T> into, std::span<const T> from, Reduction reduction) {
  if (into.size() != from.size())
    throw Error(ErrorCode::bug,
                fmt::format("reduce of {} elements into {}", from.size(), into.size()));
  switch (reduction) {
    case Reduction::sum:
      return combine(into, from, [](T a, T b) { return add(a, b); });
    case Reduction::max:
      return combine(into, from, [](T a, T b) { return larger(a, b); });
    case Reduction::min:
      return combine(into, from, [](T a, T b) { return smaller(a, b); });
  }
}

template void reduce(std::span<float>, std::span<const float>, Reduction);
template void reduce(std::span<double>, std::span<const double>, Reduction);
template void reduce(std::span<int64_t>, std::span<const int64_t>, Reduction);

}  // namespace renkei::comm
