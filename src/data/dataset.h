// What is trained on: samples with an input and either a label (classification) or a row of numbers
// (regression) as target. The caller owns the memory: it passes spans into its batch, so a sample
// is written once, where it is used. Input and target are read apart, because in a pipeline the
// first stage needs only the one and the last stage only the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renkei::data {

class Source;

// All functions may be called from many threads at once. A sample that does not exist, a span of
// the wrong size or the wrong kind of target is a mistake of the calling code, a bug Error.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t count() const = 0;
  virtual std::vector<int64_t> sample_shape() const = 0;  // of an input, such as {3, 32, 32}
  virtual int64_t classes() const = 0;                    // 0: the targets are numbers
  virtual int64_t target_size() const { return 0; }       // numbers in a target; 0 with classes

  int64_t sample_size() const;  // numbers in an input

  virtual void read_input(int64_t sample, std::span<float> input) const = 0;
  virtual int64_t label(int64_t sample) const;                              // only with classes
  virtual void read_target(int64_t sample, std::span<float> target) const;  // only without

  // As read_input, with the changes (crops, mirroring) that this epoch makes to the sample.
  virtual void read_augmented(int64_t sample, int64_t epoch, std::span<float> input) const;

  // For loaders that read ahead, the two halves of read_augmented: `source` brings the bytes of a
  // sample, `decode` makes its input of them. Null for data sets in memory.
  virtual const Source* source() const { return nullptr; }
  virtual void decode(int64_t sample, int64_t epoch, std::string_view bytes,
                      std::span<float> input) const;

 protected:
  void check_sample(int64_t sample) const;
  void check_input(int64_t sample, std::span<const float> input) const;
};

}  // namespace renkei::data
