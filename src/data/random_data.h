#pragma once

#include "base/philox.h"
#include "data/dataset.h"

namespace renkei::data {

struct RandomDataOptions {
  std::vector<int64_t> sample_shape;
  int64_t count = 0;
  int64_t classes = 0;      // either this …
  int64_t target_size = 0;  // … or this is at least 1
  uint64_t seed = 1;
  // Parts of an input, one after another, that are whole numbers instead of noise.
  struct Part {
    int64_t size;
    int64_t below = 0;  // 0: noise; otherwise uniform in 0 … below - 1
  };
  std::vector<Part> parts = {};  // empty: all noise
  int64_t target_below = 0;      // more than 0: the numbers of a target are uniform whole numbers
};

// Noise of any shape, for measuring speed, and for tests that compare runs. Inputs and regression
// targets are standard normal, labels uniform. A small data set is drawn at once, so that reading
// it costs no more than a copy; a large one is drawn as it is read.
class RandomData : public Dataset {
 public:
  explicit RandomData(RandomDataOptions options);

  int64_t count() const override { return options_.count; }
  std::vector<int64_t> sample_shape() const override { return options_.sample_shape; }
  int64_t classes() const override { return options_.classes; }
  int64_t target_size() const override { return options_.target_size; }
  void read_input(int64_t sample, std::span<float> input) const override;
  int64_t label(int64_t sample) const override;
  void read_target(int64_t sample, std::span<float> target) const override;

 private:
  void draw(RandomUse use, int64_t sample, std::span<float> values) const;

  RandomDataOptions options_;
  std::vector<float> inputs_, targets_;  // of all samples; empty: too large to be kept
};

}  // namespace renkei::data
