#pragma once

#include "data/dataset.h"

namespace renkei::data {

struct RandomTokensOptions {
  int64_t count = 0;
  int64_t sequence = 0;
  int64_t vocabulary = 0;
  bool masked = false;  // predict hidden tokens; otherwise predict the next one everywhere
  uint64_t seed = 1;
};

// Sequences of uniform token ids, made when they are read, for measuring language models. Ids are
// handed out as floats, which hold them exactly up to 2^24. A target has one id per position, or
// kNotPredicted. Masked: 15 % of the positions (at least one, the same number in every sample) hold
// the last id of the vocabulary in the input, and the id that was there in the target.
class RandomTokens : public Dataset {
 public:
  static constexpr int64_t kNotPredicted = -100;

  explicit RandomTokens(RandomTokensOptions options);

  int64_t count() const override { return options_.count; }
  std::vector<int64_t> sample_shape() const override { return {options_.sequence}; }
  int64_t classes() const override { return 0; }
  int64_t target_size() const override { return options_.sequence; }
  void read_input(int64_t sample, std::span<float> input) const override;
  void read_target(int64_t sample, std::span<float> target) const override;

 private:
  std::vector<float> tokens(int64_t sample) const;              // one more than the sequence
  std::vector<int64_t> masked_positions(int64_t sample) const;  // in no order

  RandomTokensOptions options_;
};

}  // namespace renkei::data
