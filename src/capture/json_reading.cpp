#include "capture/json_reading.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace renkei::capture {
namespace {

constexpr int kDeepest = 200;

}  // namespace

void Place::refuse(std::string_view what, std::string_view hint) const {
  constexpr std::string_view damaged =
      "the file is damaged, or of a PyTorch that Renkei does not know: export the model again";
  throw Error(ErrorCode::data, fmt::format("{}: {}", text, what),
              std::string(hint.empty() ? damaged : hint));
}

Place Place::at(std::string_view inside) const {
  return {fmt::format("{}: {}", text, inside)};
}

json parse_model_json(std::string_view text, const Place& place) {
  try {
    return json::parse(text, [&](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) place.refuse("lists and objects lie too deep in one another");
      return true;
    });
  } catch (const json::exception&) {
    place.refuse("this is not valid JSON");
  }
}

const json* find_field(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json& field(const json& object, std::string_view name, const Place& place) {
  const json* found = find_field(object, name);
  if (!found) place.refuse(fmt::format("'{}' is missing", name));
  return *found;
}

std::string text_of(const json& value, std::string_view what, const Place& place) {
  if (!value.is_string()) place.refuse(fmt::format("'{}' is not a text", what));
  return value.get<std::string>();
}

int64_t integer_of(const json& value, std::string_view what, const Place& place) {
  const bool large =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value.is_number_integer() || large)
    place.refuse(fmt::format("'{}' is not a whole number of 64 bits", what));
  return value.get<int64_t>();
}

double real_of(const json& value, std::string_view what, const Place& place) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  place.refuse(fmt::format("'{}' is not a number", what));
}

bool boolean_of(const json& value, std::string_view what, const Place& place) {
  if (!value.is_boolean()) place.refuse(fmt::format("'{}' is not true or false", what));
  return value.get<bool>();
}

const json& list_of(const json& value, std::string_view what, const Place& place) {
  if (!value.is_array()) place.refuse(fmt::format("'{}' is not a list", what));
  return value;
}

const json& object_of(const json& value, std::string_view what, const Place& place) {
  if (!value.is_object()) place.refuse(fmt::format("'{}' is not an object", what));
  return value;
}

Tagged tagged(const json& value, std::string_view what, const Place& place) {
  if (!value.is_object() || value.size() != 1)
    place.refuse(fmt::format("'{}' is not one value of a known kind", what));
  return {value.begin().key(), value.begin().value()};
}

}  // namespace renkei::capture
