#include "data/random_data.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {

RandomData::RandomData(RandomDataOptions options) : options_(std::move(options)) {
  if (options_.count < 1)
    throw Error(ErrorCode::usage, fmt::format("random data of {} samples", options_.count),
                "choose at least 1 sample");
  if (std::ranges::any_of(options_.sample_shape, [](int64_t side) { return side < 1; }))
    throw Error(ErrorCode::usage, "a sample of random data has a side without elements",
                "make every number of the sample shape at least 1");
  const bool labels = options_.classes > 0, numbers = options_.target_size > 0;
  if (labels == numbers || options_.classes < 0 || options_.target_size < 0 ||
      options_.classes > std::numeric_limits<uint32_t>::max())
    throw Error(ErrorCode::usage,
                fmt::format("random data with {} classes and targets of {} numbers",
                            options_.classes, options_.target_size),
                "give either a number of classes or a target size");
  int64_t in_parts = 0;
  for (const RandomDataOptions::Part& part : options_.parts) in_parts += part.size;
  if (in_parts > sample_size())
    throw Error(ErrorCode::bug,
                fmt::format("parts of {} numbers in an input of {}", in_parts, sample_size()));
}

void RandomData::read_input(int64_t sample, std::span<float> input) const {
  check_input(sample, input);
  Random random(options_.seed, RandomUse::random_input, 0, static_cast<uint64_t>(sample));
  auto value = input.begin();
  for (const RandomDataOptions::Part& part : options_.parts)
    for (int64_t i = 0; i < part.size; ++i, ++value)
      *value = part.below == 0
                   ? random.normal()
                   : static_cast<float>(random.below(static_cast<uint32_t>(part.below)));
  for (; value != input.end(); ++value) *value = random.normal();
}

int64_t RandomData::label(int64_t sample) const {
  if (options_.classes == 0) return Dataset::label(sample);
  check_sample(sample);
  Random random(options_.seed, RandomUse::random_target, 0, static_cast<uint64_t>(sample));
  return random.below(static_cast<uint32_t>(options_.classes));
}

void RandomData::read_target(int64_t sample, std::span<float> target) const {
  if (options_.target_size == 0) return Dataset::read_target(sample, target);
  check_sample(sample);
  if (static_cast<int64_t>(target.size()) != options_.target_size)
    throw Error(ErrorCode::bug, fmt::format("a target of {} numbers was read into a span of {}",
                                            options_.target_size, target.size()));
  Random random(options_.seed, RandomUse::random_target, 0, static_cast<uint64_t>(sample));
  const auto below = static_cast<uint32_t>(options_.target_below);
  for (float& value : target)
    value = below == 0 ? random.normal() : static_cast<float>(random.below(below));
}

}  // namespace renkei::data
