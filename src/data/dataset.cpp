#include "data/dataset.h"

#include <functional>
#include <numeric>

#include "base/error.h"

namespace renkei::data {

int64_t Dataset::sample_size() const {
  const std::vector<int64_t> shape = sample_shape();
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t Dataset::label(int64_t) const {
  throw Error(ErrorCode::bug, "a data set for regression was asked for a label");
}

void Dataset::read_target(int64_t, std::span<float>) const {
  throw Error(ErrorCode::bug, "a data set for classification was asked for a row of numbers");
}

void Dataset::read_augmented(int64_t sample, int64_t, std::span<float> input) const {
  read_input(sample, input);
}

void Dataset::decode(int64_t, int64_t, std::string_view, std::span<float>) const {
  throw Error(ErrorCode::bug, "a data set in memory was asked to decode");
}

void Dataset::check_sample(int64_t sample) const {
  if (sample < 0 || sample >= count())
    throw Error(ErrorCode::bug,
                fmt::format("sample {} is not in a data set of {}", sample, count()));
}

void Dataset::check_input(int64_t sample, std::span<const float> input) const {
  check_sample(sample);
  if (static_cast<int64_t>(input.size()) != sample_size())
    throw Error(ErrorCode::bug, fmt::format("an input of {} numbers was read into a span of {}",
                                            sample_size(), input.size()));
}

}  // namespace renkei::data
