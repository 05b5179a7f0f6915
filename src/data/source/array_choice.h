// From the names of arrays to the fields of samples, alike for every file of named arrays.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/source/array_names.h"
#include "data/source/source.h"

namespace renkei::data {

// `Array` has a type and a shape, whose first axis counts the samples.
template <typename Array>
struct ChosenArrays {
  int64_t count = 0;
  std::vector<StoredField> fields;  // record i is arrays[i]
  std::vector<Array> arrays;
  std::optional<Array> label;  // whole numbers, one for each sample
};

// One whole number for each sample?
inline bool holds_labels(ElementType type, const std::vector<int64_t>& shape) {
  return type.kind != ElementKind::floating &&
         (shape.size() == 1 || (shape.size() == 2 && shape[1] == 1));
}

// `open` makes an Array of a name, or throws a data Error. An array that nobody asked for by name
// is no field when it can't be opened, or counts something else than the samples.
template <typename Open>
auto open_chosen_arrays(const ArrayNames& names, const std::string& file, Open open) {
  using Array = decltype(open(std::string()));
  ChosenArrays<Array> chosen;
  const auto add = [&](std::string field, const std::string& name, Array array) {
    chosen.fields.push_back(
        {.name = std::move(field),
         .origin = "array " + name,
         .layout = ArrayLayout{array.type, {array.shape.begin() + 1, array.shape.end()}},
         .record = static_cast<int64_t>(chosen.arrays.size())});
    chosen.arrays.push_back(std::move(array));
  };
  const auto first_axis = [&](const std::string& name, const Array& array) {
    if (array.shape.empty() || array.shape[0] == 0)
      throw Error(ErrorCode::data, fmt::format("{} has no samples in '{}'", file, name),
                  "the first axis of the array counts the samples");
    if (std::ranges::find(array.shape, 0) != array.shape.end())
      throw Error(ErrorCode::data, fmt::format("{} has samples without values in '{}'", file, name),
                  "none of the axes may be empty");
    return array.shape[0];
  };
  if (!names.input.empty()) {
    Array input = open(names.input);
    chosen.count = first_axis(names.input, input);
    add(std::string(kInput), names.input, std::move(input));
  }
  if (!names.label.empty()) {
    Array label = open(names.label);
    if (chosen.count == 0) chosen.count = first_axis(names.label, label);
    if (label.shape.empty() || label.shape[0] != chosen.count)
      throw Error(ErrorCode::data,
                  fmt::format("{}: '{}' is not of the length of the {} samples", file, names.label,
                              chosen.count),
                  "give one label or target for each sample");
    if (holds_labels(label.type, label.shape)) {
      chosen.label = std::move(label);
      chosen.fields.push_back(
          {.name = std::string(kTarget), .origin = "array " + names.label, .record = kNoRecord});
    } else {
      add(std::string(kTarget), names.label, std::move(label));
    }
  }
  for (const auto& [field, name] : names.others) {
    std::optional<Array> other;
    try {
      other = open(name);
    } catch (const Error& error) {
      if (error.code != ErrorCode::data) throw;
      continue;
    }
    const bool counts = !other->shape.empty() && other->shape[0] > 0;
    if (chosen.count == 0 && counts) chosen.count = other->shape[0];
    if (counts && other->shape[0] == chosen.count) {
      add(field, name, std::move(*other));
    } else if (names.input.empty()) {  // so this is no table
      std::vector<std::string> all;
      for (const ArrayNames::Other& each : names.others) all.push_back(each.array);
      throw no_usual_name(file, all);
    }
  }
  if (chosen.fields.empty()) throw no_usual_name(file, {"no arrays"});
  return chosen;
}

}  // namespace renkei::data
