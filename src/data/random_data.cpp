#include "data/random_data.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/philox.h"

namespace renkei::data {
namespace {

constexpr int64_t kKeptBytes = int64_t{32} << 20;

void check_options(const RandomDataOptions& options) {
  if (options.count < 1)
    throw Error(ErrorCode::usage, fmt::format("random data of {} samples", options.count),
                "choose at least 1 sample");
  for (const RandomDataOptions::Input& input : options.inputs)
    if (std::ranges::any_of(input.shape, [](int64_t side) { return side < 1; }))
      throw Error(ErrorCode::usage, "a sample of random data has a side without elements",
                  "make every number of the sample shape at least 1");
  const bool labels = options.classes > 0, numbers = options.target_size > 0;
  if (labels == numbers || options.classes < 0 || options.target_size < 0 ||
      options.classes > std::numeric_limits<uint32_t>::max())
    throw Error(ErrorCode::usage,
                fmt::format("random data with {} classes and targets of {} numbers",
                            options.classes, options.target_size),
                "give either a number of classes or a target size");
}

Field make_field(std::string name, std::vector<int64_t> shape, int64_t below, int64_t classes = 0) {
  return {.name = std::move(name),
          .dtype = below > 0 ? DType::i64 : DType::f32,
          .shape = std::move(shape),
          .classes = classes,
          .origin = below > 0 ? "random whole numbers" : "noise"};
}

}  // namespace

RandomData::RandomData(RandomDataOptions options) : count_(options.count), seed_(options.seed) {
  if (options.inputs.empty())
    options.inputs.push_back({std::string(kInput), std::move(options.sample_shape)});
  check_options(options);
  for (RandomDataOptions::Input& input : options.inputs) {
    below_.push_back(input.below);
    fields_.push_back(make_field(std::move(input.name), std::move(input.shape), input.below));
  }
  below_.push_back(options.classes > 0 ? options.classes : options.target_below);
  fields_.push_back(make_field(
      std::move(options.target_name),
      options.classes > 0 ? std::vector<int64_t>{} : std::vector<int64_t>{options.target_size},
      below_.back(), options.classes));

  all_.resize(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const int64_t bytes = fields_[i].bytes();
    if (bytes > kKeptBytes / count_) continue;
    all_[i].resize(static_cast<size_t>(bytes * count_));
    for (int64_t sample = 0; sample < count_; ++sample)
      draw(i, sample,
           std::span(all_[i]).subspan(static_cast<size_t>(sample * bytes),
                                      static_cast<size_t>(bytes)));
  }
}

void RandomData::draw(size_t field, int64_t sample, std::span<std::byte> values) const {
  // Each field has numbers of its own, so that it can be read without the others.
  const bool target = field + 1 == fields_.size();
  Random random(seed_, target ? RandomUse::random_target : RandomUse::random_input,
                target ? 0 : static_cast<uint32_t>(field), static_cast<uint64_t>(sample));
  const auto below = static_cast<uint32_t>(below_[field]);
  if (below > 0)
    for (int64_t& value : as_numbers<int64_t>(values)) value = random.below(below);
  else
    for (float& value : as_numbers<float>(values)) value = random.normal();
}

void RandomData::read_fields(int64_t sample, int64_t, std::span<const FieldSpan> into) const {
  for (const FieldSpan& span : into) {
    const std::vector<std::byte>& all = all_[span.field];
    if (all.empty()) {
      draw(span.field, sample, span.bytes);
      continue;
    }
    const auto size = static_cast<std::ptrdiff_t>(span.bytes.size());
    std::copy_n(all.begin() + sample * size, size, span.bytes.begin());
  }
}

}  // namespace renkei::data
