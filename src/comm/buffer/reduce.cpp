// One loop serves every type, reduction and number of sources. "Lanes" say how elements become
// vectors and back: most types are computed in themselves, 16-bit floats in f32. A loop handles
// four vectors at a time, two cache lines of f32, and what is left over as a padded vector, so that
// every element sees the same arithmetic wherever it lies.
//
// Highway's own conversions to 16 bits truncate on some targets and the kernels must give the same
// bits on all of them. Where the processor has no instruction that rounds to nearest even, f16 is
// converted with integer arithmetic (after F. Giesen, "half to float done quick", 2012).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/buffer/reduce.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <cstring>

#include "comm/buffer/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::comm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Native {
  using Memory = T;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const T* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE void store(V v, T* into) { hn::StoreU(v, D(), into); }
};

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using VF32 = hn::Vec<F32>;
using VU32 = hn::Vec<U32>;

// 16-bit floats; Format converts between their bits, in 32-bit lanes, and f32.
template <typename Format>
struct Narrow {
  using Memory = uint16_t;
  using D = F32;
  using V = VF32;
  static HWY_INLINE V load(const uint16_t* from) { return Format::widen(hn::LoadU(U16(), from)); }
  static HWY_INLINE void store(V v, uint16_t* into) { hn::StoreU(Format::narrow(v), U16(), into); }
};

HWY_INLINE hn::Vec<U16> low_halves(VU32 bits) {
  return hn::DemoteTo(U16(), hn::BitCast(I32(), bits));
}

struct FormatBf16 {
  static HWY_INLINE VF32 widen(hn::Vec<U16> bits) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
  }
  static HWY_INLINE hn::Vec<U16> narrow(VF32 v) {
    const U32 d;
    const VU32 bits = hn::BitCast(d, v), high = hn::ShiftRight<16>(bits);
    const VU32 odd = hn::And(high, hn::Set(d, 1u));
    const VU32 nearest = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFu))));
    const VU32 quiet = hn::Or(high, hn::Set(d, 0x40u));
    const auto is_nan = hn::RebindMask(d, hn::IsNaN(v));
    return low_halves(hn::IfThenElse(is_nan, quiet, nearest));
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)

struct FormatF16 {
  using F16 = hn::Rebind<hwy::float16_t, F32>;
  static HWY_INLINE VF32 widen(hn::Vec<U16> bits) {
    return hn::PromoteTo(F32(), hn::BitCast(F16(), bits));
  }
  static HWY_INLINE hn::Vec<U16> narrow(VF32 v) {
    return hn::BitCast(U16(), hn::DemoteTo(F16(), v));
  }
};

#else

struct FormatF16 {
  static HWY_INLINE VF32 widen(hn::Vec<U16> bits) {
    const U32 d;
    const VU32 wide = hn::PromoteTo(d, bits);
    const VU32 sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(d, 0x8000u)));
    const VU32 shifted = hn::ShiftLeft<13>(hn::And(wide, hn::Set(d, 0x7FFFu)));
    const VU32 exponent = hn::And(shifted, hn::Set(d, 0x0F800000u));
    const VU32 normal = hn::Add(shifted, hn::Set(d, (127u - 15u) << 23));
    // A subnormal gets a leading 1 to be a number at all, which a subtraction takes away again.
    const VU32 one_more = hn::Add(normal, hn::Set(d, 1u << 23));
    const VU32 subnormal = hn::BitCast(
        d, hn::Sub(hn::BitCast(F32(), one_more), hn::BitCast(F32(), hn::Set(d, 113u << 23))));
    const VU32 infinite = hn::Add(normal, hn::Set(d, (128u - 16u) << 23));
    const VU32 quiet = hn::Or(infinite, hn::Set(d, 0x400000u));
    VU32 result = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), subnormal, normal);
    result = hn::IfThenElse(hn::Eq(exponent, hn::Set(d, 0x0F800000u)), infinite, result);
    result = hn::IfThenElse(hn::Gt(shifted, hn::Set(d, 0x0F800000u)), quiet, result);
    return hn::BitCast(F32(), hn::Or(result, sign));
  }

  static HWY_INLINE hn::Vec<U16> narrow(VF32 v) {
    const U32 d;
    const VU32 bits = hn::BitCast(d, v);
    const VU32 sign = hn::And(bits, hn::Set(d, 0x80000000u));
    const VU32 magnitude = hn::Xor(bits, sign);
    const VU32 mantissa = hn::ShiftRight<13>(magnitude);
    const VU32 odd = hn::And(mantissa, hn::Set(d, 1u));
    // Wraps around on purpose: the exponent is biased by 15 instead of 127.
    const VU32 rebiased = hn::Add(magnitude, hn::Set(d, 0xC8000FFFu));
    const VU32 normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    // Adding 1/2 leaves the result's bits at the end of the mantissa, rounded by the addition.
    const VU32 half = hn::Set(d, ((127u - 15u) + (23u - 10u) + 1u) << 23);
    const VF32 aligned = hn::Add(hn::BitCast(F32(), magnitude), hn::BitCast(F32(), half));
    const VU32 subnormal = hn::Sub(hn::BitCast(d, aligned), half);
    const VU32 infinity = hn::Set(d, 0x7C00u);
    const VU32 quiet = hn::Or(hn::Set(d, 0x7E00u), hn::And(mantissa, hn::Set(d, 0x3FFu)));
    VU32 result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 113u << 23)), subnormal, normal);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, (127u + 16u) * (1u << 23) - 1u)), infinity,
                            result);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000u)), quiet, result);
    return low_halves(hn::Or(result, hn::ShiftRight<16>(sign)));
  }
};

#endif

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

// A NaN in b is taken; a NaN in a fails the comparison and stays. (Not Ne(b, b): it is false for
// NaN on some targets.)
struct Larger {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromV<V>>)
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), b, a);
    else
      return hn::Max(a, b);
  }
};

struct Smaller {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromV<V>>)
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    else
      return hn::Min(a, b);
  }
};

// into[i] = sources[0][i] op sources[1][i] …, times a factor if kScaled. kSources is the number of
// sources where the loop is made for it, 0 where it is not.
template <class Lanes, class Op, size_t kSources, bool kScaled>
struct Loop {
  using Memory = typename Lanes::Memory;
  using D = typename Lanes::D;
  using V = hn::Vec<D>;

  Memory* into;
  std::span<std::byte* const> copies;  // more places for the result
  const std::byte* const* sources;
  size_t source_count;
  hn::TFromD<D> factor;

  static HWY_INLINE const Memory* elements(const std::byte* bytes) {
    return reinterpret_cast<const Memory*>(bytes);
  }

  // The sources where their number is known, in registers: the compiler must assume that a store
  // changes pointers which lie in memory.
  using Known = std::array<const std::byte*, kSources>;
  HWY_INLINE Known known_sources() const {
    Known known;
    for (size_t s = 0; s < kSources; ++s) known[s] = sources[s];
    return known;
  }

  HWY_INLINE V at(const Known& known, size_t i) const {
    const auto source = [&](size_t s) {
      return elements(kSources > 0 ? known[s] : sources[s]) + i;
    };
    V v = Lanes::load(source(0));
    for (size_t s = 1; s < (kSources > 0 ? kSources : source_count); ++s)
      v = Op::apply(v, Lanes::load(source(s)));
    return finished(v);
  }

  HWY_INLINE V finished(V v) const {
    if constexpr (kScaled) return hn::Mul(v, hn::Set(D(), factor));
    return v;
  }

  // Fewer elements than a vector has.
  HWY_NOINLINE void partial(size_t i, size_t count) const {
    HWY_ALIGN Memory padded[hn::MaxLanes(D())] = {};
    std::memcpy(padded, elements(sources[0]) + i, count * sizeof(Memory));
    V v = Lanes::load(padded);
    if constexpr (kSources != 1)
      for (size_t s = 1; s < source_count; ++s) {
        std::memcpy(padded, elements(sources[s]) + i, count * sizeof(Memory));
        v = Op::apply(v, Lanes::load(padded));
      }
    Lanes::store(finished(v), padded);
    std::memcpy(into + i, padded, count * sizeof(Memory));
    for (std::byte* const copy : copies)
      std::memcpy(copy + i * sizeof(Memory), padded, count * sizeof(Memory));
  }

  static HWY_INLINE void store_four(V a, V b, V c, V d, Memory* place) {
    const size_t n = hn::Lanes(D());
    Lanes::store(a, place);
    Lanes::store(b, place + n);
    Lanes::store(c, place + 2 * n);
    Lanes::store(d, place + 3 * n);
  }

  // The hardware's prefetcher stops at the end of each page of 4 KiB, and shared memory rarely has
  // larger ones. What lies behind the end is another rank's to write: not to be touched.
  static constexpr size_t kAheadBytes = 1024;
  HWY_INLINE void prefetch(const Known& known, size_t i, size_t elements) const {
    for (size_t s = 0; s < (kSources > 0 ? kSources : source_count); ++s)
      for (size_t line = 0; line < elements * sizeof(Memory); line += 64)
        hwy::Prefetch((kSources > 0 ? known[s] : sources[s]) + i * sizeof(Memory) + kAheadBytes +
                      line);
  }

  enum class Copies { none, one, several };

  // As many elements as there are in steps of four vectors; returns their number.
  template <Copies kCopies>
  HWY_INLINE size_t run_steps(const Known& known, size_t count) const {
    const size_t n = hn::Lanes(D());
    Memory* const place = into;
    Memory* const other = kCopies == Copies::one ? reinterpret_cast<Memory*>(copies[0]) : nullptr;
    size_t i = 0;
    for (; i + 4 * n <= count; i += 4 * n) {
      if (i + 4 * n + kAheadBytes / sizeof(Memory) <= count) prefetch(known, i, 4 * n);
      const V a = at(known, i), b = at(known, i + n);
      const V c = at(known, i + 2 * n), d = at(known, i + 3 * n);
      store_four(a, b, c, d, place + i);
      if constexpr (kCopies == Copies::one) store_four(a, b, c, d, other + i);
      if constexpr (kCopies == Copies::several)
        for (std::byte* const copy : copies)
          store_four(a, b, c, d, reinterpret_cast<Memory*>(copy) + i);
    }
    return i;
  }

  void run(size_t count) const {
    const size_t n = hn::Lanes(D());
    const Known known = known_sources();
    size_t i = copies.empty()       ? run_steps<Copies::none>(known, count)
               : copies.size() == 1 ? run_steps<Copies::one>(known, count)
                                    : run_steps<Copies::several>(known, count);
    for (; i + n <= count; i += n) {
      const V v = at(known, i);
      Lanes::store(v, into + i);
      for (std::byte* const copy : copies) Lanes::store(v, reinterpret_cast<Memory*>(copy) + i);
    }
    if (i < count) partial(i, count - i);
  }
};

struct Task {
  std::byte* into;
  std::span<std::byte* const> copies;
  const std::byte* const* sources;
  size_t source_count;
  size_t count;
  double factor;
};

template <class Lanes, class Op, size_t kSources, bool kScaled>
void run(const Task& task) {
  const Loop<Lanes, Op, kSources, kScaled> loop{
      reinterpret_cast<typename Lanes::Memory*>(task.into), task.copies, task.sources,
      task.source_count, static_cast<hn::TFromD<typename Lanes::D>>(task.factor)};
  loop.run(task.count);
}

template <class Lanes, class Op, bool kScaled = false>
void run_for_sources(const Task& task) {
  if (task.source_count == 2) return run<Lanes, Op, 2, kScaled>(task);
  if (task.source_count == 4) return run<Lanes, Op, 4, kScaled>(task);
  run<Lanes, Op, 0, kScaled>(task);
}

template <class Lanes>
void run_for_reduction(const Task& task, Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return run_for_sources<Lanes, Sum>(task);
    case Reduction::mean:
      if constexpr (std::is_floating_point_v<hn::TFromD<typename Lanes::D>>)
        return run_for_sources<Lanes, Sum, true>(task);
      return;
    case Reduction::max:
      return run_for_sources<Lanes, Larger>(task);
    case Reduction::min:
      return run_for_sources<Lanes, Smaller>(task);
    default:
      return;  // reduce_plain.h
  }
}

// factor counts for the mean only, which integers do not have here.
void reduce_kernel(Buffer into, std::span<std::byte* const> copies,
                   std::span<const std::byte* const> sources, Reduction reduction, double factor) {
  const Task task{into.data, copies, sources.data(), sources.size(), into.count, factor};
  switch (into.dtype) {
    case DType::f32:
      return run_for_reduction<Native<float>>(task, reduction);
    case DType::f64:
      return run_for_reduction<Native<double>>(task, reduction);
    case DType::f16:
      return run_for_reduction<Narrow<FormatF16>>(task, reduction);
    case DType::bf16:
      return run_for_reduction<Narrow<FormatBf16>>(task, reduction);
    case DType::i64:
      return run_for_reduction<Native<int64_t>>(task, reduction);
    default:
      return;  // reduce_plain.h
  }
}

void copy_kernel(std::byte* into, const std::byte* from, size_t bytes) {
  const Task task{into, {}, &from, 1, bytes, 1};
  run<Native<uint8_t>, Sum, 1, false>(task);
}

template <class From, class Into>
void convert_lanes(const Buffer& into, const Buffer& from) {
  auto* const out = reinterpret_cast<typename Into::Memory*>(into.data);
  const auto* const in = reinterpret_cast<const typename From::Memory*>(from.data);
  const size_t n = hn::Lanes(F32());
  size_t i = 0;
  for (; i + n <= into.count; i += n) Into::store(From::load(in + i), out + i);
  const size_t rest = into.count - i;
  if (rest == 0) return;
  HWY_ALIGN typename From::Memory padded_in[hn::MaxLanes(F32())] = {};
  HWY_ALIGN typename Into::Memory padded_out[hn::MaxLanes(F32())];
  std::memcpy(padded_in, in + i, rest * sizeof(padded_in[0]));
  Into::store(From::load(padded_in), padded_out);
  std::memcpy(out + i, padded_out, rest * sizeof(padded_out[0]));
}

void widen_kernel(Buffer into, Buffer from) {
  if (from.dtype == DType::f16) return convert_lanes<Narrow<FormatF16>, Native<float>>(into, from);
  convert_lanes<Narrow<FormatBf16>, Native<float>>(into, from);
}

void narrow_kernel(Buffer into, Buffer from) {
  if (into.dtype == DType::f16) return convert_lanes<Native<float>, Narrow<FormatF16>>(into, from);
  convert_lanes<Native<float>, Narrow<FormatBf16>>(into, from);
}

}  // namespace HWY_NAMESPACE
}  // namespace renkei::comm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cmath>
#include <limits>

#include "base/error.h"
#include "comm/buffer/reduce_plain.h"

namespace renkei::comm {

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
    case Reduction::product:
      return "product";
    case Reduction::bit_and:
      return "bitwise and";
    case Reduction::bit_or:
      return "bitwise or";
    case Reduction::bit_xor:
      return "bitwise exclusive or";
  }
  return "an unknown reduction";
}

HWY_EXPORT(reduce_kernel);
HWY_EXPORT(copy_kernel);
HWY_EXPORT(widen_kernel);
HWY_EXPORT(narrow_kernel);

namespace {

void check_reducible(DType dtype) {
  if (dtype == DType::u8)
    throw Error(ErrorCode::bug, "bytes have no arithmetic: u8 can be moved, not reduced");
}

void scale_integers(int64_t* values, size_t count, double factor) {
  // 2^63 itself is a double, but no int64_t.
  constexpr double kLimit = 0x1p63;
  for (size_t i = 0; i < count; ++i) {
    const double scaled = std::nearbyint(static_cast<double>(values[i]) * factor);
    if (scaled >= kLimit)
      values[i] = std::numeric_limits<int64_t>::max();
    else if (scaled < -kLimit)
      values[i] = std::numeric_limits<int64_t>::min();
    else
      values[i] = static_cast<int64_t>(scaled);
  }
}

}  // namespace

void reduce(Buffer into, Buffer from, Reduction reduction) {
  if (into.count != from.count || into.dtype != from.dtype)
    throw Error(ErrorCode::bug, fmt::format("reduce of {} {} into {} {}", from.count,
                                            name_of(from.dtype), into.count, name_of(into.dtype)));
  const std::byte* const sources[] = {into.data, from.data};
  reduce_many(into, sources, reduction == Reduction::mean ? Reduction::sum : reduction);
}

void reduce_many(Buffer into, std::span<const std::byte* const> sources, Reduction reduction) {
  if (sources.empty()) throw Error(ErrorCode::bug, "reduce_many without a source");
  if (!into.data) return;
  if (sources.size() == 1) {
    if (into.data != sources[0])
      HWY_DYNAMIC_DISPATCH(copy_kernel)(into.data, sources[0], into.bytes());
    return;
  }
  check_reducible(into.dtype);
  if (is_reduced_plainly(into.dtype, reduction))
    return reduce_plainly(into, {}, sources, reduction);
  const double factor = 1.0 / static_cast<double>(sources.size());
  if (reduction == Reduction::mean && into.dtype == DType::i64) {
    HWY_DYNAMIC_DISPATCH(reduce_kernel)(into, {}, sources, Reduction::sum, 1);
    return scale(into, factor);
  }
  HWY_DYNAMIC_DISPATCH(reduce_kernel)(into, {}, sources, reduction, factor);
}

// For shared_allreduce.cpp, which declares it.
void reduce_and_spread(Buffer into, std::span<std::byte* const> copies,
                       std::span<const std::byte* const> sources, Reduction reduction) {
  if (!into.data) return;
  if (sources.size() == 1 || (reduction == Reduction::mean && into.dtype == DType::i64)) {
    reduce_many(into, sources, reduction);
    for (std::byte* const copy : copies)
      if (into.count > 0) std::memcpy(copy, into.data, into.bytes());
    return;
  }
  check_reducible(into.dtype);
  if (is_reduced_plainly(into.dtype, reduction))
    return reduce_plainly(into, copies, sources, reduction);
  const double factor = 1.0 / static_cast<double>(sources.size());
  HWY_DYNAMIC_DISPATCH(reduce_kernel)(into, copies, sources, reduction, factor);
}

void scale(Buffer buffer, double factor) {
  check_reducible(buffer.dtype);
  if (!buffer.data) return;
  if (buffer.dtype == DType::i64)
    return scale_integers(reinterpret_cast<int64_t*>(buffer.data), buffer.count, factor);
  // The mean of a single source with another factor.
  const std::byte* const source = buffer.data;
  HWY_DYNAMIC_DISPATCH(reduce_kernel)(buffer, {}, {&source, 1}, Reduction::mean, factor);
}

void convert(Buffer into, Buffer from) {
  const auto is_narrow = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  if (into.count != from.count)
    throw Error(ErrorCode::bug,
                fmt::format("convert of {} elements into {}", from.count, into.count));
  if (!into.data || !from.data) return;
  if (into.dtype == DType::f32 && is_narrow(from.dtype))
    HWY_DYNAMIC_DISPATCH(widen_kernel)(into, from);
  else if (from.dtype == DType::f32 && is_narrow(into.dtype))
    HWY_DYNAMIC_DISPATCH(narrow_kernel)(into, from);
  else
    throw Error(ErrorCode::bug, fmt::format("there is no conversion from {} to {}",
                                            name_of(from.dtype), name_of(into.dtype)));
}

}  // namespace renkei::comm

#endif  // HWY_ONCE
