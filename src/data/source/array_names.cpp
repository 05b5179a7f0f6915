#include "data/source/array_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace renkei::data {
namespace {

struct Pair {
  const char* input;
  const char* label;
};

constexpr Pair kTrain[] = {{"x_train", "y_train"},
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

}  // namespace

ArrayNames choose_arrays(const std::vector<std::string>& names, const std::string& file, Part part,
                         const std::string& input, const std::string& label) {
  const auto has = [&](const std::string& name) { return std::ranges::count(names, name) > 0; };
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorCode::data,
                 fmt::format("{} has no array {}; it has {}", file, what, fmt::join(names, ", ")),
                 "name the arrays with --set data.input=NAME --set data.label=NAME");
  };
  if (part == Part::held_out) {
    for (const auto& pair : kHeldOut)
      if (has(pair.input) && has(pair.label)) return {pair.input, pair.label};
    return {};
  }
  ArrayNames chosen;
  for (const auto& pair : kTrain)
    if (has(pair.input) && (has(pair.label) || chosen.input.empty()) && chosen.label.empty())
      chosen = {pair.input, has(pair.label) ? pair.label : ""};
  if (input != "auto") chosen.input = input;
  if (label != "auto") chosen.label = label;
  if (chosen.input.empty()) throw refuse("of a usual name");
  if (!has(chosen.input)) throw refuse(fmt::format("'{}'", chosen.input));
  if (!chosen.label.empty() && !has(chosen.label)) throw refuse(fmt::format("'{}'", chosen.label));
  return chosen;
}

}  // namespace renkei::data
