#pragma once

#include <cstdint>

namespace renkei::data {

// The order of the samples 0 … count - 1 in one epoch: a random permutation that is computed, not
// stored, so that any rank can ask for any place at any time. A small value; copy it freely.
class Permutation {
 public:
  Permutation(int64_t count, uint64_t seed, int64_t epoch);

  int64_t count() const { return count_; }
  int64_t operator()(int64_t position) const;  // the sample at this position
  int64_t position_of(int64_t sample) const;   // the inverse

 private:
  uint64_t encrypt(uint64_t value) const;
  uint64_t decrypt(uint64_t value) const;
  uint64_t round_value(int round, uint64_t half) const;

  int64_t count_;
  uint64_t seed_;
  uint32_t epoch_;
  uint64_t a_;  // the left half is in [0, a), the right in [0, b)
  uint64_t b_;
};

}  // namespace renkei::data
