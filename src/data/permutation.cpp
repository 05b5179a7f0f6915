// A random permutation of [0, n) without a table, so that a data set of 10^10 samples is shuffled
// in no memory and any rank can start in the middle of any epoch.
//
// It is a cipher for small numbers. Choose a = ceil(sqrt n), made even, and b = ceil(n / a), and
// write x < ab as a pair x = l + a r with l < a, r < b. A round changes one half by what the other
// says:
//
//   even rounds   l <- (l + F(round, r)) mod a
//   odd rounds    r <- (r + F(round, l)) mod b
//
// where F is Philox keyed by (seed, epoch). Each round can be undone by subtracting, whatever F is,
// so this Feistel network is a permutation of [0, ab). It becomes one of [0, n) by cycle walking:
// while the result is n or more, apply it again; the walk follows a cycle that starts inside, so it
// ends inside.
//
// Cost: 20 calls of Philox (about 0.5 us) and O(1) memory. As ab - n < a, a second walk is needed
// with a probability of about 1 / sqrt n. Reference: Black and Rogaway, "Ciphers with arbitrary
// finite domains", CT-RSA 2002 (methods 2 and 3).
#include "data/permutation.h"

#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {
namespace {

// Four rounds make a cipher in theory, with large halves. With the tiny ones of small data sets it
// takes twenty until all orders are equally likely (eight fail the test with 5 samples).
constexpr int kRounds = 20;

uint64_t ceil_sqrt(uint64_t n) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;  // std::sqrt of a rounded n may be off by one either way
  while (root > 1 && (root - 1) * (root - 1) >= n) --root;
  return root;
}

}  // namespace

Permutation::Permutation(int64_t count, uint64_t seed, int64_t epoch)
    : count_(count), seed_(seed), epoch_(static_cast<uint32_t>(epoch)) {
  if (count < 1)
    throw Error(ErrorCode::bug, fmt::format("there is no permutation of {} samples", count));
  const auto n = static_cast<uint64_t>(count);
  // If a and b were both odd, each round would be an even permutation, and so would their product:
  // half of all orders would never occur.
  a_ = (ceil_sqrt(n) + 1) / 2 * 2;
  b_ = (n + a_ - 1) / a_;
}

uint64_t Permutation::round_value(int round, uint64_t half) const {
  // A half has at most 32 bits, as n < 2^63; the round goes above it.
  Random random(seed_, RandomUse::shuffle, epoch_, static_cast<uint64_t>(round) << 32 | half);
  const uint64_t high = random();
  return high << 32 | random();
}

uint64_t Permutation::encrypt(uint64_t value) const {
  uint64_t l = value % a_, r = value / a_;
  for (int round = 0; round < kRounds; round += 2) {
    l = (l + round_value(round, r) % a_) % a_;
    r = (r + round_value(round + 1, l) % b_) % b_;
  }
  return l + a_ * r;
}

uint64_t Permutation::decrypt(uint64_t value) const {
  uint64_t l = value % a_, r = value / a_;
  for (int round = kRounds - 2; round >= 0; round -= 2) {
    r = (r + b_ - round_value(round + 1, l) % b_) % b_;
    l = (l + a_ - round_value(round, r) % a_) % a_;
  }
  return l + a_ * r;
}

int64_t Permutation::operator()(int64_t position) const {
  if (position < 0 || position >= count_)
    throw Error(ErrorCode::bug, fmt::format("position {} of {} does not exist", position, count_));
  auto value = static_cast<uint64_t>(position);
  do value = encrypt(value);
  while (value >= static_cast<uint64_t>(count_));
  return static_cast<int64_t>(value);
}

int64_t Permutation::position_of(int64_t sample) const {
  if (sample < 0 || sample >= count_)
    throw Error(ErrorCode::bug, fmt::format("sample {} of {} does not exist", sample, count_));
  auto value = static_cast<uint64_t>(sample);
  do value = decrypt(value);
  while (value >= static_cast<uint64_t>(count_));
  return static_cast<int64_t>(value);
}

}  // namespace renkei::data
