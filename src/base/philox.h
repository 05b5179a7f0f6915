// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011).
//
// A counter-based generator is a function: (key, counter) -> 128 random bits, with no state to
// carry along. Renkei keys every random number by what it is for, (seed, use, epoch, sample), so
// that the number of ranks or threads, the order of work or a restart changes nothing.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace renkei {

// What a random number is used for. Two uses never share a stream. Values are part of the
// reproducibility contract: add at the end, never renumber.
enum class RandomUse : uint32_t {
  shuffle = 1,
  random_input = 2,
  random_target = 3,
  synth_image = 4,
  augmentation = 5,
  dropout = 6,
  replacement = 7,
  run_offset = 8,
  initial_value = 9,
  simulated_device = 10,
  simulated_jitter = 11,
  simulated_failure = 12,
};

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// A sequence of random numbers for one (seed, use, epoch, sample). Cheap to make, so make one
// where it is needed. Satisfies UniformRandomBitGenerator.
class Random {
 public:
  using result_type = uint32_t;

  Random(uint64_t seed, RandomUse use, uint32_t epoch, uint64_t sample)
      // The use goes into the key, the place into the counter; the lowest word counts blocks.
      : key_(seed ^ (uint64_t{static_cast<uint32_t>(use)} * 0x9E3779B97F4A7C15)),
        counter_{0, static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32), epoch} {}

  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return 0xFFFFFFFF; }

  uint32_t operator()() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }

  // Uniform in [0, 1), with 24 bits: exact in float.
  float uniform() { return static_cast<float>((*this)() >> 8) * 0x1.0p-24f; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }

  // Uniform in [0, n); the bias of the multiply is under 2^-32.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((uint64_t{(*this)()} * n) >> 32); }

  // Standard normal by Box-Muller. std::normal_distribution differs between standard libraries.
  float normal() {
    const float u = 1.0f - uniform(), v = uniform();
    return std::sqrt(-2.0f * std::log(u)) * std::cos(2.0f * std::numbers::pi_v<float> * v);
  }

 private:
  uint64_t key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace renkei
