#pragma once

#include "data/dataset.h"
#include "data/loader/loader.h"

namespace renkei::data {

// A field of one sample, as numbers of its type.
template <typename T>
std::vector<T> values_of(const Dataset& dataset, int64_t sample, std::string_view name,
                         int64_t epoch = 0) {
  const size_t field = field_index(dataset.fields(), name);
  std::vector<T> values(static_cast<size_t>(dataset.fields()[field].elements()));
  const FieldSpan into{.field = field, .bytes = std::as_writable_bytes(std::span(values))};
  dataset.read(sample, epoch, {&into, 1});
  return values;
}

inline std::vector<float> input_of(const Dataset& dataset, int64_t sample, int64_t epoch = 0) {
  return values_of<float>(dataset, sample, kInput, epoch);
}

inline int64_t label_of(const Dataset& dataset, int64_t sample) {
  return values_of<int64_t>(dataset, sample, kTarget)[0];
}

// Of all samples of a batch.
template <typename T>
std::vector<T> values_of(const LoadedBatch& batch, std::string_view name) {
  for (const LoadedField& loaded : batch.fields)
    if (loaded.field->name == name) {
      const std::span<const T> values = loaded.as<T>();
      return {values.begin(), values.end()};
    }
  return {};
}

}  // namespace renkei::data
