// Numbers are made in blocks of 64, each from 16 calls of Philox that run side by side in vector
// registers: number j of a block is word j / 16 of call j % 16. The counter of a call is its
// number and the hash of the name, the key is of the seed.
//
// A normal number is √2 times the inverse of the error function of one between -1 and 1. The
// polynomials are those of M. Giles, "Approximating the erfinv function" (GPU Computing Gems,
// 2011), single precision.
#include "networks/initial_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/philox.h"

namespace renkei::networks {
namespace {

using Kind = program::Initial::Kind;

constexpr int kCalls = 16;
constexpr int64_t kBlock = 4 * kCalls;
using Words = std::array<uint32_t, kBlock>;
using Numbers = std::array<float, kBlock>;

struct Stream {
  uint64_t key, name_hash;
};

Stream stream_of(const InitialPart& part) {
  const auto use = static_cast<uint32_t>(RandomUse::initial_value);
  return {part.seed ^ (uint64_t{use} * 0x9E3779B97F4A7C15), Checksum().add(part.name).value()};
}

// philox() of base/philox.h, for kCalls counters at once.
[[gnu::always_inline]] inline void draw(const Stream& stream, int64_t block, Words& words) {
  uint32_t* const c0 = words.data();
  uint32_t* const c1 = c0 + kCalls;
  uint32_t* const c2 = c1 + kCalls;
  uint32_t* const c3 = c2 + kCalls;
  for (int i = 0; i < kCalls; ++i) {
    const auto call = static_cast<uint64_t>(block) * kCalls + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(call);
    c1[i] = static_cast<uint32_t>(call >> 32);
    c2[i] = static_cast<uint32_t>(stream.name_hash);
    c3[i] = static_cast<uint32_t>(stream.name_hash >> 32);
  }
  auto k0 = static_cast<uint32_t>(stream.key), k1 = static_cast<uint32_t>(stream.key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kCalls; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[i], p1 = uint64_t{0xCD9E8D57} * c2[i];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c0[i] = n0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = n2;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// Of a number between 0 and 1: m 2^e with m in [√½, √2), and log m = 2 artanh((m - 1) / (m + 1)).
[[gnu::always_inline]] inline float logarithm(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t exponent = (bits - 0x3F3504F3) >> 23;
  const auto m = std::bit_cast<float>(bits - (exponent << 23));
  const float s = (m - 1) / (m + 1), q = s * s;
  const float series =
      1 + q * (1 / 3.0f + q * (1 / 5.0f + q * (1 / 7.0f + q * (1 / 9.0f + q * (1 / 11.0f)))));
  return static_cast<float>(exponent) * std::numbers::ln2_v<float> + 2 * s * series;
}

template <size_t count>
[[gnu::always_inline]] inline float polynomial(const std::array<float, count>& coefficients,
                                               float x) {
  float sum = coefficients[0];
  for (size_t i = 1; i < count; ++i) sum = coefficients[i] + sum * x;
  return sum;
}

// Of -1 < x < 1.
[[gnu::always_inline]] inline float inverse_error_function(float x) {
  constexpr std::array<float, 9> kMiddle{2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                         -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                         -0.00417768164f,  0.246640727f,    1.50140941f};
  constexpr std::array<float, 9> kTail{-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                       -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                       0.00943887047f,   1.00167406f,     2.83297682f};
  const float w = -logarithm((1 - x) * (1 + x));
  const float middle = polynomial(kMiddle, w - 2.5f);
  const float tail = polynomial(kTail, std::sqrt(w) - 3.0f);
  return (w < 5 ? middle : tail) * x;
}

// 24 bits, odd numbers over 2^24: symmetric, and never an end.
[[gnu::always_inline]] inline float between_minus_one_and_one(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8) * 2 + 1 - (1 << 24)) * 0x1p-24f;
}

[[gnu::always_inline]] inline void make_uniform(const Words& words, float low, float high,
                                                Numbers& numbers) {
  for (size_t i = 0; i < words.size(); ++i)
    numbers[i] =
        low + (high - low) * (static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f);
}

struct Normal {
  float mean, scale;  // √2 × deviation
  float end;          // of what the inverse is taken: 1, or less where the ends are cut off
  float low, high;
};

Normal normal_of(const program::Initial& initial) {
  Normal normal{.mean = static_cast<float>(initial.a),
                .scale = static_cast<float>(initial.b * std::numbers::sqrt2),
                .end = 1,
                .low = -HUGE_VALF,
                .high = HUGE_VALF};
  if (initial.kind != Kind::truncated_normal) return normal;
  // The C library's function, but rounded to so few digits that all libraries agree.
  const double end = std::erf(2 / initial.b / std::numbers::sqrt2);
  normal.end = static_cast<float>(std::round(end * 0x1p30) * 0x1p-30);
  normal.low = -2;
  normal.high = 2;
  return normal;
}

[[gnu::always_inline]] inline void make_normal(const Words& words, const Normal& normal,
                                               Numbers& numbers) {
  for (size_t i = 0; i < words.size(); ++i) {
    const float x = between_minus_one_and_one(words[i]) * normal.end;
    const float value = normal.mean + normal.scale * inverse_error_function(x);
    numbers[i] = std::min(std::max(value, normal.low), normal.high);
  }
}

struct Distribution {
  bool uniform;
  float low, high;
  Normal normal;
};

[[gnu::always_inline]] inline void make_block(const Stream& stream,
                                              const Distribution& distribution, int64_t block,
                                              Numbers& numbers) {
  Words words;
  draw(stream, block, words);
  if (distribution.uniform)
    make_uniform(words, distribution.low, distribution.high, numbers);
  else
    make_normal(words, distribution.normal, numbers);
}

using MakeBlock = void(const Stream&, const Distribution&, int64_t, Numbers&);

void make_block_anywhere(const Stream& stream, const Distribution& distribution, int64_t block,
                         Numbers& numbers) {
  make_block(stream, distribution, block, numbers);
}

#ifdef __x86_64__
// The same with vectors twice as wide: the same operations, so the same bits.
[[gnu::target("avx2")]] void make_block_avx2(const Stream& stream, const Distribution& distribution,
                                             int64_t block, Numbers& numbers) {
  make_block(stream, distribution, block, numbers);
}
#endif

MakeBlock* block_maker() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return make_block_avx2;
#endif
  return make_block_anywhere;
}

void fill_random(std::span<float> values, const InitialPart& part) {
  const Stream stream = stream_of(part);
  const Distribution distribution{.uniform = part.initial.kind == Kind::uniform,
                                  .low = static_cast<float>(part.initial.a),
                                  .high = static_cast<float>(part.initial.b),
                                  .normal = normal_of(part.initial)};
  MakeBlock* const make = block_maker();
  Numbers numbers;
  for (int64_t done = 0; done < std::ssize(values);) {
    const int64_t at = part.begin + done, skip = at % kBlock;
    make(stream, distribution, at / kBlock, numbers);
    const int64_t count = std::min(kBlock - skip, std::ssize(values) - done);
    std::copy_n(numbers.begin() + skip, count, values.begin() + done);
    done += count;
  }
}

template <class Number>
bool fill_fixed(std::span<Number> values, const InitialPart& part) {
  if (part.initial.kind == Kind::constant) {
    std::ranges::fill(values, static_cast<Number>(part.initial.a));
    return true;
  }
  if (part.initial.kind != Kind::count) return false;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Number>(part.begin + static_cast<int64_t>(i));
  return true;
}

[[noreturn]] void refuse(const InitialPart& part) {
  throw Error(ErrorCode::usage, fmt::format("nothing says which values {} starts from", part.name),
              "give a file of weights: --set model.weights=FILE");
}

}  // namespace

void fill_initial(std::span<float> values, const InitialPart& part, int threads) {
  if (fill_fixed(values, part)) return;
  if (part.initial.kind == Kind::given) refuse(part);
  const auto size = std::ssize(values);
  // Less than this is not worth a thread.
  const int64_t parts = std::clamp<int64_t>(size >> 16, 1, std::max(threads, 1));
  const auto fill_part = [&](int64_t i) {
    const int64_t begin = size * i / parts, end = size * (i + 1) / parts;
    InitialPart one = part;
    one.begin += begin;
    fill_random(values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), one);
  };
  std::vector<std::jthread> others;
  for (int64_t i = 1; i < parts; ++i) others.emplace_back(fill_part, i);
  fill_part(0);
}

void fill_initial(std::span<int64_t> values, const InitialPart& part) {
  if (!fill_fixed(values, part)) refuse(part);
}

}  // namespace renkei::networks
