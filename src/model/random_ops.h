// What a network draws itself, as dropout does, must not depend on who computes it and what was
// drawn before: each drawing operation starts from a state of its own, given by (seed, step,
// micro-batch, which of the network's drawing operations it is).
#pragma once

#include <cstdint>
#include <string_view>

namespace renkei::model {

struct RandomKey {
  uint64_t seed = 1;
  int64_t step = 0;
  int64_t micro_batch = 0;
};

// While one exists, the drawing operations of this thread are numbered from 0 and start from the
// state of their number.
class KeyedRandom {
 public:
  explicit KeyedRandom(const RandomKey& key);
  ~KeyedRandom();
  KeyedRandom(const KeyedRandom&) = delete;
  KeyedRandom& operator=(const KeyedRandom&) = delete;

 private:
  uint64_t callback_;
};

// Whether an operation of Torch, "aten::dropout", draws numbers.
bool draws(std::string_view operation);

// The operator renkei::random_op(number): the next drawing operation is that number. A part of a
// network has one before each of its drawing operations, because the others are elsewhere.
constexpr const char* kRandomOp = "renkei::random_op";

}  // namespace renkei::model
