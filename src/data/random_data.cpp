#include "data/random_data.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {
namespace {

constexpr int64_t kKeptFloats = int64_t{32 << 20} / 4;

// One sample's part of the values of all.
template <typename Floats>
auto part(Floats& all, int64_t sample, size_t size) {
  return std::span(all).subspan(static_cast<size_t>(sample) * size, size);
}

}  // namespace

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

  const auto keep = [&](RandomUse use, int64_t size, std::vector<float>& all) {
    if (size > kKeptFloats / options_.count) return;
    all.resize(static_cast<size_t>(size * options_.count));
    for (int64_t sample = 0; sample < options_.count; ++sample)
      draw(use, sample, part(all, sample, static_cast<size_t>(size)));
  };
  keep(RandomUse::random_input, sample_size(), inputs_);
  keep(RandomUse::random_target, options_.target_size, targets_);
}

void RandomData::draw(RandomUse use, int64_t sample, std::span<float> values) const {
  Random random(options_.seed, use, 0, static_cast<uint64_t>(sample));
  const auto next = [&](int64_t below) {
    return below == 0 ? random.normal()
                      : static_cast<float>(random.below(static_cast<uint32_t>(below)));
  };
  const bool input = use == RandomUse::random_input;
  auto value = values.begin();
  if (input)
    for (const RandomDataOptions::Part& part : options_.parts)
      for (int64_t i = 0; i < part.size; ++i, ++value) *value = next(part.below);
  for (; value != values.end(); ++value) *value = next(input ? 0 : options_.target_below);
}

void RandomData::read_input(int64_t sample, std::span<float> input) const {
  check_input(sample, input);
  if (inputs_.empty()) return draw(RandomUse::random_input, sample, input);
  std::ranges::copy(part(inputs_, sample, input.size()), input.begin());
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
  if (targets_.empty()) return draw(RandomUse::random_target, sample, target);
  std::ranges::copy(part(targets_, sample, target.size()), target.begin());
}

}  // namespace renkei::data
