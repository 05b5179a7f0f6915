#include "data/random_tokens.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {

RandomTokens::RandomTokens(RandomTokensOptions options) : options_(options) {
  for (const std::string_view name : {kInput, kTarget})
    fields_.push_back({.name = std::string(name),
                       .dtype = DType::i64,
                       .shape = {options_.sequence},
                       .origin = "random tokens"});
  if (options_.count < 1 || options_.sequence < 1 || options_.vocabulary < 2 ||
      options_.vocabulary > INT32_MAX)
    throw Error(ErrorCode::usage,
                fmt::format("{} random sequences of {} tokens out of {}", options_.count,
                            options_.sequence, options_.vocabulary),
                "choose at least 1 sequence of 1 token, and a vocabulary of 2 to 2^31 - 1");
}

std::vector<int64_t> RandomTokens::tokens(int64_t sample) const {
  Random random(options_.seed, RandomUse::random_input, 0, static_cast<uint64_t>(sample));
  // The last id is the mask's, where there is one.
  const auto ids = static_cast<uint32_t>(options_.vocabulary - (options_.masked ? 1 : 0));
  std::vector<int64_t> drawn(static_cast<size_t>(options_.sequence) + 1);
  for (int64_t& token : drawn) token = random.below(ids);
  return drawn;
}

std::vector<int64_t> RandomTokens::masked_positions(int64_t sample) const {
  Random random(options_.seed, RandomUse::random_target, 0, static_cast<uint64_t>(sample));
  std::vector<int64_t> positions(static_cast<size_t>(options_.sequence));
  std::iota(positions.begin(), positions.end(), 0);
  const auto wanted = static_cast<size_t>(std::max<int64_t>(1, options_.sequence * 15 / 100));
  for (size_t i = 0; i < wanted; ++i)
    std::swap(positions[i],
              positions[i + random.below(static_cast<uint32_t>(positions.size() - i))]);
  positions.resize(wanted);
  return positions;
}

void RandomTokens::read_fields(int64_t sample, int64_t, std::span<const FieldSpan> into) const {
  for (const FieldSpan& span : into)
    if (span.field == 0)
      read_input(sample, as_numbers<int64_t>(span.bytes));
    else
      read_target(sample, as_numbers<int64_t>(span.bytes));
}

void RandomTokens::read_input(int64_t sample, std::span<int64_t> input) const {
  std::ranges::copy_n(tokens(sample).begin(), options_.sequence, input.begin());
  if (!options_.masked) return;
  for (const int64_t position : masked_positions(sample))
    input[static_cast<size_t>(position)] = options_.vocabulary - 1;
}

void RandomTokens::read_target(int64_t sample, std::span<int64_t> target) const {
  const std::vector<int64_t> drawn = tokens(sample);
  if (!options_.masked) {
    std::ranges::copy(drawn.begin() + 1, drawn.end(), target.begin());
    return;
  }
  std::ranges::fill(target, kNotPredicted);
  for (const int64_t position : masked_positions(sample))
    target[static_cast<size_t>(position)] = drawn[static_cast<size_t>(position)];
}

}  // namespace renkei::data
