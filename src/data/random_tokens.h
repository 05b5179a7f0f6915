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

// Sequences of uniform token ids (i64), made when they are read, for measuring language models. A
// target has one id per position, or kNotPredicted. Masked: 15 % of the positions (at least one,
// the same number in every sample) hold the last id of the vocabulary in the input, and the id that
// was there in the target.
class RandomTokens : public Dataset {
 public:
  static constexpr int64_t kNotPredicted = -100;

  explicit RandomTokens(RandomTokensOptions options);

  int64_t count() const override { return options_.count; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_fields(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const override;
  void read_input(int64_t sample, std::span<int64_t> input) const;
  void read_target(int64_t sample, std::span<int64_t> target) const;
  std::vector<int64_t> tokens(int64_t sample) const;            // one more than the sequence
  std::vector<int64_t> masked_positions(int64_t sample) const;  // in no order

  RandomTokensOptions options_;
  std::vector<Field> fields_;
};

}  // namespace renkei::data
