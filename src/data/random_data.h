#pragma once

#include "data/dataset.h"

namespace renkei::data {

struct RandomDataOptions {
  std::vector<int64_t> sample_shape;  // of the one input …
  int64_t count = 0;
  int64_t classes = 0;      // either this …
  int64_t target_size = 0;  // … or this is at least 1
  uint64_t seed = 1;
  struct Input {
    std::string name;
    std::vector<int64_t> shape;
    int64_t below = 0;  // 0: noise; otherwise whole numbers, uniform in 0 … below - 1
  };
  std::vector<Input> inputs = {};  // … unless there are several, or one of whole numbers
  int64_t target_below = 0;        // more than 0: the numbers of a target are uniform whole numbers
  std::string target_name = std::string(kTarget);
};

// Noise of any shape, for measuring speed, and for tests that compare runs. Inputs and regression
// targets are standard normal (f32), labels and ids uniform (i64). A small data set is drawn at
// once, so that reading it costs no more than a copy; a large one is drawn as it is read.
class RandomData : public Dataset {
 public:
  explicit RandomData(RandomDataOptions options);

  int64_t count() const override { return count_; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_fields(int64_t sample, int64_t epoch, std::span<const FieldSpan> into) const override;
  void draw(size_t field, int64_t sample, std::span<std::byte> values) const;

  int64_t count_;
  uint64_t seed_;
  std::vector<Field> fields_;                // the inputs, then the target
  std::vector<int64_t> below_;               // of each; 0: noise
  std::vector<std::vector<std::byte>> all_;  // of all samples; empty: too large to be kept
};

}  // namespace renkei::data
