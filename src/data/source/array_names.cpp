#include "data/source/array_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "data/field.h"

namespace renkei::data {
namespace {

struct Pair {
  const char* input;
  const char* label;
};

constexpr Pair kTrain[] = {{"input", "target"},
                           {"x_train", "y_train"},
                           {"X_train", "y_train"},
                           {"train_images", "train_labels"},
                           {"train/images", "train/labels"},
                           {"x", "y"},
                           {"X", "y"},
                           {"images", "labels"},
                           {"data", "target"},
                           {"data", "labels"},
                           {"image", "label"},
                           {"arr_0", "arr_1"}};
constexpr Pair kHeldOut[] = {{"x_test", "y_test"},
                             {"X_test", "y_test"},
                             {"x_val", "y_val"},
                             {"test_images", "test_labels"},
                             {"test/images", "test/labels"}};

// "ids_test" is "ids" of the held-out part, "train/ids" of the other one.
struct Divided {
  std::string_view base;
  std::string_view affix = {};  // empty: of both, or of neither
};

Divided divide(std::string_view name) {
  for (const std::string_view affix : {"_train", "_test", "_val"})
    if (name.ends_with(affix) && name != affix)
      return {name.substr(0, name.size() - affix.size()), affix};
  for (const std::string_view affix : {"train_", "train/", "test_", "test/", "val_", "val/"})
    if (name.starts_with(affix) && name != affix) return {name.substr(affix.size()), affix};
  return {name};
}

bool is_held_out(std::string_view affix) {
  return !affix.empty() && affix.find("train") == std::string_view::npos;
}

bool is_usual_label(std::string_view name) {
  const std::string_view base = divide(name).base;
  return base == "y" || base == "labels" || base == "label" || base == "target";
}

// The arrays that go with the affix of the chosen one: all of the same, and in the training part
// those without any.
std::vector<ArrayNames::Other> others_of(const std::vector<std::string>& names, Part part,
                                         const ArrayNames& chosen) {
  std::string_view affix = divide(chosen.input.empty() ? chosen.label : chosen.input).affix;
  for (const std::string& name : names)
    if (affix.empty() && is_held_out(divide(name).affix) == (part == Part::held_out))
      affix = divide(name).affix;
  std::vector<ArrayNames::Other> others;
  if (part == Part::held_out && affix.empty()) return others;
  for (const std::string& name : names) {
    const Divided divided = divide(name);
    const bool fits = divided.affix == affix || (part == Part::train && divided.affix.empty());
    const bool taken = name == chosen.input || name == chosen.label || divided.base == kInput ||
                       divided.base == kTarget ||
                       std::ranges::count(others, divided.base, &ArrayNames::Other::field) > 0;
    if (fits && !taken) others.push_back({std::string(divided.base), name});
  }
  return others;
}

constexpr std::string_view kHint =
    "name the arrays with --set data.input=NAME --set data.label=NAME";

}  // namespace

Error no_usual_name(const std::string& file, const std::vector<std::string>& names) {
  return Error(
      ErrorCode::data,
      fmt::format("{} has no array of a usual name; it has {}", file, fmt::join(names, ", ")),
      std::string(kHint));
}

std::optional<ArrayNames> choose_arrays(const std::vector<std::string>& names,
                                        const std::string& file, Part part,
                                        const std::string& input, const std::string& label) {
  const auto has = [&](const std::string& name) { return std::ranges::count(names, name) > 0; };
  ArrayNames chosen;
  if (part == Part::held_out) {
    for (const auto& pair : kHeldOut)
      if (chosen.input.empty() && has(pair.input) && has(pair.label))
        chosen = {pair.input, pair.label};
  } else {
    for (const auto& pair : kTrain)
      if (has(pair.input) && (has(pair.label) || chosen.input.empty()) && chosen.label.empty())
        chosen = {pair.input, has(pair.label) ? pair.label : ""};
    if (input != "auto") chosen.input = input;
    if (label != "auto") chosen.label = label;
    for (const std::string& name : {chosen.input, chosen.label})
      if (!name.empty() && !has(name))
        throw Error(
            ErrorCode::data,
            fmt::format("{} has no array '{}'; it has {}", file, name, fmt::join(names, ", ")),
            std::string(kHint));
  }
  // What is held out has the fields of the rest: without an input only where the rest has none.
  if (part == Part::held_out && chosen.input.empty() &&
      !choose_arrays(names, file, Part::train, input, label)->input.empty())
    return {};
  if (chosen.input.empty() && chosen.label.empty())  // a table, which may have labels
    for (const std::string& name : names)
      if (is_usual_label(name) && is_held_out(divide(name).affix) == (part == Part::held_out) &&
          chosen.label.empty())
        chosen.label = name;
  chosen.others = others_of(names, part, chosen);
  if (part == Part::held_out && chosen.input.empty() && chosen.others.empty()) return {};
  return chosen;
}

}  // namespace renkei::data
