// One loop serves all rules and any number of gradients. It goes by cache lines; what is left over
// goes through a padded vector, so that each element sees the same arithmetic wherever it lies.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/kernels.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "optim/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace renkei::optim {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V all(float x) {
  return hn::Set(D(), x);
}

// a b + c with two roundings.
HWY_INLINE V times_plus(float a, V b, V c) {
  return hn::Add(hn::Mul(all(a), b), c);
}

// What belongs to one element: its value and its state.
struct Lanes {
  V value, first, second;
};

struct Sgd {
  static constexpr int kStates = states_of(Rule::sgd);
  Coefficients c;
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    const V d = hn::Add(g, hn::Mul(all(c.decay), e.value));
    e.value = hn::Sub(e.value, hn::Mul(all(c.rate), d));
    return e;
  }
};

struct Momentum {
  static constexpr int kStates = states_of(Rule::momentum);
  Coefficients c;
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    const V d = hn::Add(g, hn::Mul(all(c.decay), e.value));
    e.first = times_plus(c.momentum, e.first, d);
    e.value = hn::Sub(e.value, hn::Mul(all(c.rate), e.first));
    return e;
  }
};

struct Nesterov {
  static constexpr int kStates = states_of(Rule::nesterov);
  Coefficients c;
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    const V d = hn::Add(g, hn::Mul(all(c.decay), e.value));
    e.first = times_plus(c.momentum, e.first, d);
    const V ahead = times_plus(c.momentum, e.first, d);
    e.value = hn::Sub(e.value, hn::Mul(all(c.rate), ahead));
    return e;
  }
};

// The moving averages of Adam and LAMB.
HWY_INLINE void average(const Coefficients& c, Lanes& e, V d) {
  e.first = times_plus(c.beta1, e.first, hn::Mul(all(c.one_minus_beta1), d));
  e.second = times_plus(c.beta2, e.second, hn::Mul(all(c.one_minus_beta2), hn::Mul(d, d)));
}

struct Adam {
  static constexpr int kStates = states_of(Rule::adam);
  Coefficients c;
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    average(c, e, hn::Add(g, hn::Mul(all(c.decay), e.value)));
    const V root = hn::Add(hn::Mul(hn::Sqrt(e.second), all(c.unbias2)), all(c.epsilon));
    const V step = hn::Mul(all(c.rate), hn::Div(e.first, root));
    e.value = hn::Sub(hn::Mul(all(c.keep), e.value), step);
    return e;
  }
};

struct Lars {
  static constexpr int kStates = states_of(Rule::lars);
  Coefficients c;
  HWY_INLINE V direction(const Lanes&, V g) const { return g; }
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    const V d = hn::Add(g, hn::Mul(all(c.decay), e.value));
    e.first = times_plus(c.momentum, e.first, hn::Mul(all(c.rate), d));
    e.value = hn::Sub(e.value, e.first);
    return e;
  }
};

struct Lamb {
  static constexpr int kStates = states_of(Rule::lamb);
  Coefficients c;
  HWY_INLINE V direction(Lanes e, V g) const {
    average(c, e, g);
    return from_averages(e);
  }
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    average(c, e, g);
    e.value = hn::Sub(e.value, hn::Mul(all(c.rate), from_averages(e)));
    return e;
  }

 private:
  HWY_INLINE V from_averages(const Lanes& e) const {
    const V root = hn::Add(hn::Mul(hn::Sqrt(e.second), all(c.unbias2)), all(c.epsilon));
    const V ratio = hn::Div(hn::Mul(e.first, all(c.unbias1)), root);
    return hn::Add(ratio, hn::Mul(all(c.decay), e.value));
  }
};

struct RmspropWarmup {
  static constexpr int kStates = states_of(Rule::rmsprop_warmup);
  Coefficients c;
  HWY_INLINE Lanes updated(Lanes e, V g) const {
    const V d = hn::Add(g, hn::Mul(all(c.decay), e.value));
    e.second = times_plus(c.beta2, e.second, hn::Mul(all(c.one_minus_beta2), hn::Mul(d, d)));
    const V root = hn::Add(hn::Sqrt(e.second), all(c.epsilon));
    const V share = hn::Add(all(c.sgd_share), hn::Div(all(c.rms_share), root));
    e.first = hn::Sub(hn::Mul(all(c.momentum), e.first), hn::Mul(share, d));
    e.value = hn::Add(e.value, hn::Mul(all(c.rate), e.first));
    return e;
  }
};

// The gradients' sum. kSources is their number where the loop is made for it, 0 where it is not.
template <size_t kSources>
struct Sum {
  const float* const* sources;
  size_t number;
  size_t offset;
  float scale;

  HWY_INLINE V at(size_t i) const {
    V v = hn::LoadU(D(), sources[0] + offset + i);
    if constexpr (kSources == 2) v = hn::Add(v, hn::LoadU(D(), sources[1] + offset + i));
    if constexpr (kSources == 0)
      for (size_t s = 1; s < number; ++s) v = hn::Add(v, hn::LoadU(D(), sources[s] + offset + i));
    return hn::Mul(v, all(scale));
  }

  // Fewer elements than a vector has; the others are zero.
  HWY_INLINE V part(size_t i, size_t count) const {
    HWY_ALIGN float padded[hn::MaxLanes(D())] = {};
    std::memcpy(padded, sources[0] + offset + i, count * sizeof(float));
    V v = hn::Load(D(), padded);
    for (size_t s = 1; s < number; ++s) {
      std::memcpy(padded, sources[s] + offset + i, count * sizeof(float));
      v = hn::Add(v, hn::Load(D(), padded));
    }
    return hn::Mul(v, all(scale));
  }

  // As in comm/buffer/reduce.cpp: the hardware's prefetcher stops at the end of each page of 4 KiB.
  HWY_INLINE void prefetch(size_t i) const {
    constexpr size_t kAheadFloats = 256;
    for (size_t s = 0; s < (kSources == 0 ? number : kSources); ++s)
      hwy::Prefetch(sources[s] + offset + i + kAheadFloats);
  }
};

template <int kStates, class Float>
HWY_INLINE Lanes load(const PieceOf<Float>& piece, size_t i) {
  const V value = hn::LoadU(D(), piece.values + i);
  Lanes e{value, value, value};
  if constexpr (kStates > 0) e.first = hn::LoadU(D(), piece.first + i);
  if constexpr (kStates > 1) e.second = hn::LoadU(D(), piece.second + i);
  return e;
}

template <int kStates>
HWY_INLINE void store(const Lanes& e, const Piece& piece, size_t i) {
  hn::StoreU(e.value, D(), piece.values + i);
  if constexpr (kStates > 0) hn::StoreU(e.first, D(), piece.first + i);
  if constexpr (kStates > 1) hn::StoreU(e.second, D(), piece.second + i);
}

// A copy of the last few elements of a piece, with zeros up to a whole vector.
struct Padded {
  HWY_ALIGN float arrays[3][hn::MaxLanes(D())] = {};

  template <int kStates, class Float>
  HWY_INLINE Lanes load(const PieceOf<Float>& piece, size_t i, size_t count) {
    const float* const from[] = {piece.values, piece.first, piece.second};
    for (int a = 0; a <= kStates; ++a) std::memcpy(arrays[a], from[a] + i, count * sizeof(float));
    return {hn::Load(D(), arrays[0]), hn::Load(D(), arrays[1]), hn::Load(D(), arrays[2])};
  }

  template <int kStates>
  HWY_INLINE void store(const Lanes& e, const Piece& piece, size_t i, size_t count) {
    hn::Store(e.value, D(), arrays[0]);
    hn::Store(e.first, D(), arrays[1]);
    hn::Store(e.second, D(), arrays[2]);
    float* const into[] = {piece.values, piece.first, piece.second};
    for (int a = 0; a <= kStates; ++a) std::memcpy(into[a] + i, arrays[a], count * sizeof(float));
  }
};

// Floats of a step of the loops: a cache line, or a vector where that is larger.
HWY_INLINE size_t stride() {
  return std::max<size_t>(16, hn::Lanes(D()));
}

template <class R, size_t kSources>
void update_loop(const Coefficients& coefficients, const Piece& given) {
  const R rule{coefficients};
  const Piece piece = given;
  const Sum<kSources> sum{piece.gradients.data(), piece.gradients.size(), piece.gradient_offset,
                          coefficients.gradient_scale};
  const size_t n = hn::Lanes(D()), line = stride();
  size_t i = 0;
  for (; i + line <= piece.count; i += line) {
    sum.prefetch(i);
    for (size_t j = i; j < i + line; j += n)
      store<R::kStates>(rule.updated(load<R::kStates>(piece, j), sum.at(j)), piece, j);
  }
  for (; i < piece.count; i += n) {
    const size_t count = std::min(n, piece.count - i);
    Padded padded;
    const Lanes e = padded.load<R::kStates>(piece, i, count);
    padded.store<R::kStates>(rule.updated(e, sum.part(i, count)), piece, i, count);
  }
}

template <class R>
void update_with(const Coefficients& coefficients, const Piece& piece) {
  if (piece.gradients.size() == 1) return update_loop<R, 1>(coefficients, piece);
  if (piece.gradients.size() == 2) return update_loop<R, 2>(coefficients, piece);
  update_loop<R, 0>(coefficients, piece);
}

void update_kernel(Rule rule, const Coefficients& coefficients, const Piece& piece) {
  switch (rule) {
    case Rule::sgd:
      return update_with<Sgd>(coefficients, piece);
    case Rule::momentum:
      return update_with<Momentum>(coefficients, piece);
    case Rule::nesterov:
      return update_with<Nesterov>(coefficients, piece);
    case Rule::adam:
      return update_with<Adam>(coefficients, piece);
    case Rule::lars:
      return update_with<Lars>(coefficients, piece);
    case Rule::lamb:
      return update_with<Lamb>(coefficients, piece);
    case Rule::rmsprop_warmup:
      return update_with<RmspropWarmup>(coefficients, piece);
  }
}

// Sums squares as square_sum.h says. The lower parts of a square are at most 2^40 units, the top
// ones of a block together less than 2^53 (or over the limit), so that doubles add those of a block
// of 2^12 elements without rounding.
class Squares {
 public:
  static constexpr size_t kBlock = 4096;

  // Written out: an implicit one would be compiled for no instruction set.
  HWY_INLINE Squares() { clear(); }

#if HWY_TARGET == HWY_SCALAR  // one lane has no halves
  using D64 = hn::Rebind<double, D>;
  HWY_INLINE void add(V x) {
    add_doubles(hn::PromoteTo(D64(), x));
  }
#else
  using D64 = hn::RepartitionToWide<D>;
  HWY_INLINE void add(V x) {
    const hn::Half<D> half;
    add_doubles(hn::PromoteTo(D64(), hn::LowerHalf(half, x)));
    add_doubles(hn::PromoteTo(D64(), hn::UpperHalf(half, x)));
  }
#endif

  // At the end of a block at the latest.
  HWY_INLINE void move_into(SquareSum& sum) {
    const double top = sum_of(limb0_);
    // Fails for NaN.
    if (!(top < SquareSum::kLimit)) {
      ++sum.overflows;
    } else {
      sum.limbs[0] += static_cast<int64_t>(top / unit(0));
      sum.limbs[1] += static_cast<int64_t>(sum_of(limb1_) / unit(1));
      sum.limbs[2] += static_cast<int64_t>(sum_of(limb2_) / unit(2));
      sum.carry();
    }
    clear();
  }

 private:
  using V64 = hn::Vec<D64>;

  static constexpr double unit(int limb) {
    return limb == 0 ? 0x1p4 : limb == 1 ? 0x1p-36 : 0x1p-76;
  }
  static_assert(SquareSum::kTopExponent == 4 && SquareSum::kLimbBits == 40);

  // Takes the multiple of the unit that is nearest to `rest` away from it: next to 1.5 × 2^52 units
  // doubles are one unit apart.
  static HWY_INLINE V64 taken(V64& rest, int limb) {
    const V64 anchor = hn::Set(D64(), 0x1.8p52 * unit(limb));
    const V64 part = hn::Sub(hn::Add(rest, anchor), anchor);
    rest = hn::Sub(rest, part);
    return part;
  }

  HWY_INLINE void clear() {
    limb0_ = limb1_ = limb2_ = hn::Zero(D64());
  }

  HWY_INLINE void add_doubles(V64 x) {
    V64 rest = hn::Mul(x, x);
    limb0_ = hn::Add(limb0_, taken(rest, 0));
    limb1_ = hn::Add(limb1_, taken(rest, 1));
    limb2_ = hn::Add(limb2_, taken(rest, 2));
  }

  static HWY_INLINE double sum_of(V64 v) {
    HWY_ALIGN double lanes[hn::MaxLanes(D64())];
    hn::Store(v, D64(), lanes);
    double sum = 0;
    for (size_t i = 0; i < hn::Lanes(D64()); ++i) sum += lanes[i];
    return sum;
  }

  V64 limb0_, limb1_, limb2_;
};

template <class R>
void norm_loop(const Coefficients& coefficients, const ConstPiece& given, Norms& result) {
  const R rule{coefficients};
  const ConstPiece piece = given;
  const Sum<0> sum{piece.gradients.data(), piece.gradients.size(), piece.gradient_offset,
                   coefficients.gradient_scale};
  const size_t n = hn::Lanes(D());
  for (size_t begin = 0; begin < piece.count; begin += Squares::kBlock) {
    const size_t end = std::min(piece.count, begin + Squares::kBlock);
    Squares values, update;
    size_t i = begin;
    for (; i + n <= end; i += n) {
      const Lanes e = load<R::kStates>(piece, i);
      values.add(e.value);
      update.add(rule.direction(e, sum.at(i)));
    }
    if (i < end) {
      Padded padded;
      const Lanes e = padded.load<R::kStates>(piece, i, end - i);
      values.add(e.value);
      update.add(rule.direction(e, sum.part(i, end - i)));
    }
    values.move_into(result.values);
    update.move_into(result.update);
  }
}

void norm_kernel(Rule rule, const Coefficients& coefficients, const ConstPiece& piece,
                 Norms& result) {
  if (rule == Rule::lars) norm_loop<Lars>(coefficients, piece, result);
  if (rule == Rule::lamb) norm_loop<Lamb>(coefficients, piece, result);
}

template <size_t kSources>
void square_loop(Gradients gradients, size_t count, float scale, SquareSum& result) {
  const Sum<kSources> sum{gradients.data(), gradients.size(), 0, scale};
  const size_t n = hn::Lanes(D());
  for (size_t begin = 0; begin < count; begin += Squares::kBlock) {
    const size_t end = std::min(count, begin + Squares::kBlock);
    Squares squares;
    size_t i = begin;
    for (; i + n <= end; i += n) squares.add(sum.at(i));
    if (i < end) squares.add(sum.part(i, end - i));
    squares.move_into(result);
  }
}

void square_kernel(Gradients gradients, size_t count, float scale, SquareSum& result) {
  if (gradients.size() == 1) return square_loop<1>(gradients, count, scale, result);
  square_loop<0>(gradients, count, scale, result);
}

}  // namespace HWY_NAMESPACE
}  // namespace renkei::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "base/error.h"

namespace renkei::optim {

HWY_EXPORT(update_kernel);
HWY_EXPORT(norm_kernel);
HWY_EXPORT(square_kernel);

namespace {

void check_gradients(Gradients gradients) {
  if (gradients.empty()) throw Error(ErrorCode::bug, "an update without a gradient");
}

}  // namespace

void update(Rule rule, const Coefficients& coefficients, const Piece& piece) {
  check_gradients(piece.gradients);
  HWY_DYNAMIC_DISPATCH(update_kernel)(rule, coefficients, piece);
}

Norms norms(Rule rule, const Coefficients& coefficients, const ConstPiece& piece) {
  check_gradients(piece.gradients);
  if (rule != Rule::lars && rule != Rule::lamb)
    throw Error(ErrorCode::bug, "norms are asked for a rule that does not use them");
  Norms result;
  HWY_DYNAMIC_DISPATCH(norm_kernel)(rule, coefficients, piece, result);
  return result;
}

SquareSum sum_of_squares(Gradients gradients, size_t count, float gradient_scale) {
  check_gradients(gradients);
  SquareSum result;
  HWY_DYNAMIC_DISPATCH(square_kernel)(gradients, count, gradient_scale, result);
  return result;
}

Norms& Norms::operator+=(const Norms& other) {
  values += other.values;
  update += other.update;
  return *this;
}

}  // namespace renkei::optim

#endif  // HWY_ONCE
