#include "base/json_fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/settings.h"

namespace renkei {
namespace {

std::optional<std::string> id_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  return std::nullopt;
}

// 1048576.0 and 1e6 are whole too: other programs write such numbers.
bool is_whole(const nlohmann::json& value, int64_t low, int64_t high) {
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::abs(number) > 0x1p53 || number != std::floor(number)) return false;
  } else if (!value.is_number_integer() ||
             (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})) {
    return false;
  }
  const auto number = value.get<int64_t>();
  return number >= low && number <= high;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t end = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(end), '\n');
    throw Error(ErrorCode::data, fmt::format("{} line {}: this is not valid JSON", file, line),
                "the file was cut off, or a comma, quote or bracket is missing there");
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::data, fmt::format("{}: a number in it is too large", file));
  }
}

JsonFields::JsonFields(const nlohmann::json& object, std::string place)
    : object_(&object), place_(std::move(place)) {
  if (!object.is_object())
    throw Error(ErrorCode::data, fmt::format("{} must be a JSON object", place_));
}

// "model.json: ops[3].kind": only the first step is set off by a colon.
std::string JsonFields::place_of(std::string_view name) const {
  const bool first = place_.find(": ") == std::string::npos;
  return fmt::format("{}{}{}", place_, first ? ": " : ".", name);
}

void JsonFields::refuse(std::string_view name, std::string_view must) const {
  throw Error(ErrorCode::data, fmt::format("{} must be {}", place_of(name), must));
}

void JsonFields::allow_only(const std::vector<std::string>& names) const {
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::count(names, key) > 0) continue;
    const auto near = nearest_name(key, names);
    throw Error(ErrorCode::data, fmt::format("{} is not a known key", place_of(key)),
                near ? fmt::format("did you mean {}?", *near)
                     : fmt::format("the keys there are {}", fmt::join(names, ", ")));
  }
}

bool JsonFields::has(std::string_view name) const {
  const auto found = object_->find(name);
  return found != object_->end() && !found->is_null();
}

const nlohmann::json& JsonFields::field(std::string_view name) const {
  if (!has(name)) refuse(name, "there");
  return *object_->find(name);
}

int64_t JsonFields::integer(std::string_view name, int64_t low, int64_t high) const {
  const nlohmann::json& value = field(name);
  if (!is_whole(value, low, high))
    refuse(name, fmt::format("a whole number from {} to {}", low, high));
  return value.get<int64_t>();
}

double JsonFields::real(std::string_view name, double low, double high) const {
  const nlohmann::json& value = field(name);
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= low && number <= high))
    refuse(name, fmt::format("a number from {} to {}", low, high));
  return number;
}

bool JsonFields::boolean(std::string_view name) const {
  const nlohmann::json& value = field(name);
  if (!value.is_boolean()) refuse(name, "true or false");
  return value.get<bool>();
}

std::string JsonFields::text(std::string_view name) const {
  const nlohmann::json& value = field(name);
  if (!value.is_string()) refuse(name, "a text in quotes");
  return value.get<std::string>();
}

std::string JsonFields::id(std::string_view name) const {
  const auto id = id_of(field(name));
  if (!id) refuse(name, "a text or a whole number");
  return *id;
}

std::vector<std::string> JsonFields::ids(std::string_view name) const {
  const nlohmann::json& list = field(name);
  std::vector<std::string> ids;
  if (list.is_array())
    for (const nlohmann::json& value : list)
      if (auto id = id_of(value)) ids.push_back(*std::move(id));
  if (!list.is_array() || ids.size() != list.size())
    refuse(name, "a list of ids (texts or whole numbers)");
  return ids;
}

std::vector<int64_t> JsonFields::integers(std::string_view name, int64_t low, int64_t high) const {
  const nlohmann::json& list = field(name);
  const auto fits = [&](const nlohmann::json& value) { return is_whole(value, low, high); };
  if (!list.is_array() || !std::ranges::all_of(list, fits))
    refuse(name, fmt::format("a list of whole numbers from {} to {}", low, high));
  return list.get<std::vector<int64_t>>();
}

std::vector<JsonFields> JsonFields::objects(std::string_view name) const {
  const nlohmann::json& list = field(name);
  if (!list.is_array()) refuse(name, "a list of objects");
  std::vector<JsonFields> objects;
  for (size_t i = 0; i < list.size(); ++i)
    objects.emplace_back(list[i], fmt::format("{}[{}]", place_of(name), i));
  return objects;
}

JsonFields JsonFields::object(std::string_view name) const {
  return {field(name), place_of(name)};
}

int64_t JsonFields::integer_or(std::string_view name, int64_t low, int64_t high,
                               int64_t otherwise) const {
  return has(name) ? integer(name, low, high) : otherwise;
}

double JsonFields::real_or(std::string_view name, double low, double high, double otherwise) const {
  return has(name) ? real(name, low, high) : otherwise;
}

bool JsonFields::boolean_or(std::string_view name, bool otherwise) const {
  return has(name) ? boolean(name) : otherwise;
}

std::string JsonFields::text_or(std::string_view name, std::string otherwise) const {
  return has(name) ? text(name) : std::move(otherwise);
}

nlohmann::json json_id(const std::string& id) {
  const bool digits = !id.empty() && id.size() <= 18 &&
                      std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && (id == "0" || id[0] != '0')) return std::stoll(id);
  return id;
}

}  // namespace renkei
