#include "data/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/settings.h"

namespace renkei::data {

std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[] = {"u8",  "i8",  "i16", "i32",    "i64",
                                         "f16", "f32", "f64", "boolean"};
  return kNames[static_cast<size_t>(dtype)];
}

int64_t bytes_of(DType dtype) {
  constexpr int64_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 1};
  return kBytes[static_cast<size_t>(dtype)];
}

int64_t Field::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

size_t field_index(std::span<const Field> fields, std::string_view name) {
  if (const Field* found = find_field(fields, name))
    return static_cast<size_t>(found - fields.data());
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  const auto near = nearest_name(name, names);
  throw Error(ErrorCode::usage,
              fmt::format("the data has no field '{}'; it has {}", name, fmt::join(names, ", ")),
              near ? fmt::format("did you mean {}?", *near)
                   : fmt::format("say which one it is: --set data.fields={}=NAME", name));
}

}  // namespace renkei::data
