#include "comm/buffer/reduce.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tests/comm/patterns.h"

namespace renkei::comm {
namespace {

// The plain arithmetic, one element at a time, with another way to round than the kernels'.

// To the nearest multiple of the last bit that a format with this exponent has; all exact in
// double.
double rounded(double x, int mantissa_bits, int smallest_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int last_bit = std::max(exponent - 1, smallest_exponent) - mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(x, -last_bit)), last_bit);
}

uint16_t half_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7E00 | (bits >> 13 & 0x3FF));
  const double value = std::fabs(rounded(x, 10, -14));
  if (value > 65504) return sign | 0x7C00;
  if (value < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<int>(value * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 |
                               (static_cast<int>(fraction * 2048) & 0x3FF));
}

float from_half(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  if (exponent == 31 && fraction != 0)
    return std::bit_cast<float>((bits & 0x8000u) << 16 | 0x7FC00000u |
                                static_cast<uint32_t>(fraction) << 13);
  if (exponent == 31) return static_cast<float>(sign * HUGE_VAL);
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(fraction, -24));
  return static_cast<float>(sign * std::ldexp(1024 + fraction, exponent - 25));
}

uint16_t bfloat16_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  // f32 and bf16 have the same exponents, so that only the largest numbers overflow.
  const auto nearest = static_cast<float>(rounded(x, 7, -126));
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(nearest) >> 16);
}

float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

template <typename T>
struct Plain {
  using Value = T;
  static T value(T x) { return x; }
  static T element(T x) { return x; }
};
template <>
struct Plain<Half> {
  using Value = float;
  static float value(Half x) { return from_half(x.bits); }
  static Half element(float x) { return {half_bits(x)}; }
};
template <>
struct Plain<BFloat16> {
  using Value = float;
  static float value(BFloat16 x) { return from_bfloat16(x.bits); }
  static BFloat16 element(float x) { return {bfloat16_bits(x)}; }
};

template <typename V>
V plain_pair(V a, V b, Reduction reduction) {
  if (reduction == Reduction::max) return a < b || b != b ? b : a;
  if (reduction == Reduction::min) return b < a || b != b ? b : a;
  if constexpr (std::is_integral_v<V>)
    return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename V>
V plain_scaled(V x, double factor) {
  if constexpr (std::is_integral_v<V>)
    return std::llrint(static_cast<double>(x) * factor);
  else
    return x * static_cast<V>(factor);
}

template <typename T>
T plain_reduction(const std::vector<T>& elements, Reduction reduction) {
  auto result = Plain<T>::value(elements[0]);
  for (size_t i = 1; i < elements.size(); ++i)
    result = plain_pair(result, Plain<T>::value(elements[i]), reduction);
  if (reduction == Reduction::mean && elements.size() > 1)
    result = plain_scaled(result, 1.0 / static_cast<double>(elements.size()));
  return Plain<T>::element(result);
}

// Any bits: NaN, infinities, subnormals and -0 are frequent among 16-bit floats and put among the
// others.
template <typename T>
std::vector<T> any_elements(int source, size_t count) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = mixed(mixed(static_cast<uint64_t>(source)) + i);
    if constexpr (sizeof(T) == 2) {
      result[i].bits = static_cast<uint16_t>(random);
    } else if constexpr (std::is_integral_v<T>) {
      result[i] = static_cast<T>(random >> random % 60);
    } else {
      using Limits = std::numeric_limits<T>;
      const T special[] = {Limits::quiet_NaN(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           T{0},
                           -T{0},
                           Limits::max(),
                           Limits::lowest()};
      result[i] = random % 4 == 0 ? special[random / 4 % std::size(special)]
                                  : static_cast<T>(std::ldexp(static_cast<double>(random) - 0x1p63,
                                                              static_cast<int>(random % 90) - 110));
    }
  }
  return result;
}

template <typename T>
bool is_nan(T x) {
  const auto value = Plain<T>::value(x);
  return value != value;
}

// Which of two NaNs an addition returns is not defined, so that any NaN is as good as another.
template <typename T>
void expect_same(const std::vector<T>& actual, const std::vector<T>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (is_nan(expected[i])) {
      ASSERT_TRUE(is_nan(actual[i])) << "element " << i;
    } else {
      ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0) << "element " << i;
    }
  }
}

void for_every_instruction_set(const std::function<void()>& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

constexpr Reduction kReductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                     Reduction::min};

template <typename T>
class Reduce : public testing::Test {};
using Numbers = testing::Types<float, double, Half, BFloat16, int64_t>;
TYPED_TEST_SUITE(Reduce, Numbers);

template <typename T>
void check_reduce_many(size_t sources, size_t count, size_t offset, Reduction reduction) {
  std::vector<std::vector<T>> inputs;
  std::vector<const std::byte*> pointers;
  for (size_t s = 0; s < sources; ++s) {
    inputs.push_back(any_elements<T>(static_cast<int>(s), offset + s + count));
    pointers.push_back(Buffer(std::span(inputs[s])).part(offset + s, count).data);
  }
  std::vector<T> expected(offset + count + 1, T{}), into(offset + count + 1, T{});
  for (size_t i = 0; i < count; ++i) {
    std::vector<T> elements;
    for (size_t s = 0; s < sources; ++s) elements.push_back(inputs[s][offset + s + i]);
    expected[offset + i] = plain_reduction(elements, reduction);
  }
  reduce_many(Buffer(std::span(into)).part(offset, count), pointers, reduction);
  expect_same(into, expected);
}

TYPED_TEST(Reduce, GivesTheBitsOfThePlainLoopForAnySourcesSizesAndPlaces) {
  for_every_instruction_set([] {
    for (const size_t sources : {1, 2, 3, 4, 5, 8})
      for (const size_t count : {0, 1, 3, 7, 8, 15, 16, 31, 64, 129, 1000})
        for (const size_t offset : {0, 1, 3})
          for (const Reduction reduction : kReductions)
            check_reduce_many<TypeParam>(sources, count, offset, reduction);
  });
}

// Into one of the sources, or into all of them.
template <typename T>
void check_in_place(size_t sources, size_t target, bool everywhere, Reduction reduction) {
  constexpr size_t kCount = 1001;
  std::vector<std::vector<T>> inputs;
  for (size_t s = 0; s < sources; ++s)
    inputs.push_back(any_elements<T>(static_cast<int>(s), kCount));
  std::vector<T> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<T> elements;
    for (const auto& input : inputs) elements.push_back(input[i]);
    expected[i] = plain_reduction(elements, reduction);
  }
  const auto untouched = inputs;
  std::vector<const std::byte*> pointers;
  std::vector<std::byte*> others;
  for (size_t s = 0; s < sources; ++s) {
    pointers.push_back(Buffer(std::span(inputs[s])).data);
    if (s != target && everywhere) others.push_back(Buffer(std::span(inputs[s])).data);
  }
  reduce_and_spread(Buffer(std::span(inputs[target])), others, pointers, reduction);
  for (size_t s = 0; s < sources; ++s)
    expect_same(inputs[s], s == target || everywhere ? expected : untouched[s]);
}

TYPED_TEST(Reduce, MayWriteOverAnyOrAllOfItsSources) {
  for_every_instruction_set([] {
    for (const size_t sources : {2, 3, 4})
      for (size_t target = 0; target < sources; ++target)
        for (const bool everywhere : {false, true})
          for (const Reduction reduction : {Reduction::sum, Reduction::mean})
            check_in_place<TypeParam>(sources, target, everywhere, reduction);
  });
}

TYPED_TEST(Reduce, OfAPairCountsTheMeanAsASum) {
  const auto from = any_elements<TypeParam>(1, 1000);
  for (const Reduction reduction : kReductions) {
    auto into = any_elements<TypeParam>(0, 1000);
    auto expected = into;
    const Reduction plain = reduction == Reduction::mean ? Reduction::sum : reduction;
    for (size_t i = 0; i < into.size(); ++i)
      expected[i] = plain_reduction<TypeParam>({into[i], from[i]}, plain);
    auto copy = from;
    reduce(Buffer(std::span(into)), Buffer(std::span(copy)), reduction);
    expect_same(into, expected);
  }
}

TYPED_TEST(Reduce, ScalesEveryElement) {
  for_every_instruction_set([] {
    for (const size_t count : {0, 1, 7, 1000})
      for (const double factor : {1.0 / 3, 1.0, -0.5}) {
        auto values = any_elements<TypeParam>(0, count);
        std::vector<TypeParam> expected(count);
        for (size_t i = 0; i < count; ++i)
          expected[i] =
              Plain<TypeParam>::element(plain_scaled(Plain<TypeParam>::value(values[i]), factor));
        scale(Buffer(std::span(values)), factor);
        expect_same(values, expected);
      }
  });
}

TYPED_TEST(Reduce, RefusesBuffersOfDifferentLengths) {
  std::vector<TypeParam> into(3), from(4);
  EXPECT_THROW(reduce(Buffer(std::span(into)), Buffer(std::span(from)), Reduction::sum), Error);
}

TEST(ReduceOfBytes, IsABug) {
  std::vector<uint8_t> into(3), from(3);
  try {
    reduce(Buffer(std::span(into)), Buffer(std::span(from)), Reduction::sum);
    FAIL() << "bytes were added";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bug);
  }
  EXPECT_THROW(scale(Buffer(std::span(into)), 2), Error);
}

TEST(ReduceOfNumbers, NeverHidesANaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Reduction reduction : kReductions) {
    std::vector<double> into{nan, 1, nan}, from{1, nan, nan};
    reduce(Buffer(std::span(into)), Buffer(std::span(from)), reduction);
    for (const double value : into) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ReduceOfIntegers, WrapsAround) {
  std::vector<int64_t> into{std::numeric_limits<int64_t>::max()}, from{1};
  reduce(Buffer(std::span(into)), Buffer(std::span(from)), Reduction::sum);
  EXPECT_EQ(into[0], std::numeric_limits<int64_t>::min());
}

TEST(ReduceOfIntegers, StaysInRangeWhenItScales) {
  std::vector<int64_t> values{std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min(), 5, -5};
  scale(Buffer(std::span(values)), 2);
  EXPECT_EQ(values, (std::vector<int64_t>{std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min(), 10, -10}));
}

TEST(ReduceOfHalves, RoundsOnceAtTheEnd) {
  // 2048 + 1 + 1: every single addition in f16 would round back to 2048.
  std::vector<Half> big{{half_bits(2048)}}, one{{half_bits(1)}}, into(1);
  const std::byte* const sources[] = {Buffer(std::span(big)).data, Buffer(std::span(one)).data,
                                      Buffer(std::span(one)).data};
  reduce_many(Buffer(std::span(into)), sources, Reduction::sum);
  EXPECT_EQ(from_half(into[0].bits), 2050);
}

template <typename Narrow>
void check_widening(float (*widened)(uint16_t)) {
  std::vector<Narrow> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size()), expected(all.size());
  for (size_t i = 0; i < all.size(); ++i) expected[i] = widened(all[i].bits);
  convert(Buffer(std::span(wide)), Buffer(std::span(all)));
  EXPECT_TRUE(same_bits<float>(wide, expected));

  std::vector<Narrow> back(all.size());
  convert(Buffer(std::span(back)), Buffer(std::span(wide)));
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(wide[i])) continue;
    ASSERT_EQ(back[i], all[i]);
  }
}

TEST(Convert, WidensEvery16BitNumberAndBringsItBack) {
  for_every_instruction_set([] {
    check_widening<Half>(from_half);
    check_widening<BFloat16>(from_bfloat16);
  });
}

template <typename Narrow>
void check_narrowing(const std::vector<float>& wide, uint16_t (*narrowed)(float)) {
  std::vector<Narrow> actual(wide.size());
  auto copy = wide;
  convert(Buffer(std::span(actual)), Buffer(std::span(copy)));
  for (size_t i = 0; i < wide.size(); ++i)
    ASSERT_EQ(actual[i].bits, narrowed(wide[i])) << "of " << wide[i];
}

TEST(Convert, RoundsToNearestEvenAlsoAtTies) {
  // Around every f16 and bf16 number, halfway to the next, and their neighbours in f32.
  std::vector<float> wide;
  for (uint32_t bits = 0; bits < 65536; bits += 3)
    for (const uint32_t base :
         {std::bit_cast<uint32_t>(from_half(static_cast<uint16_t>(bits))), bits << 16})
      for (const uint32_t step : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u})
        wide.push_back(std::bit_cast<float>(base + step));
  wide.push_back(65519.99f);
  wide.push_back(65520);
  wide.push_back(-1e30f);
  for_every_instruction_set([&] {
    check_narrowing<Half>(wide, half_bits);
    check_narrowing<BFloat16>(wide, bfloat16_bits);
  });
}

TEST(Convert, RefusesWhatItCannotConvert) {
  std::vector<double> doubles(2);
  std::vector<float> floats(2);
  std::vector<Half> halves(3);
  EXPECT_THROW(convert(Buffer(std::span(doubles)), Buffer(std::span(floats))), Error);
  EXPECT_THROW(convert(Buffer(std::span(halves)), Buffer(std::span(floats))), Error);
}

}  // namespace
}  // namespace renkei::comm
