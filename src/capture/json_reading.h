// The fields of the JSON in model files. What does not fit is a data Error that says where in terms
// of the model: "net.pt2: conv2d (net.py:12 in forward): 'stride' is not a whole number".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace renkei::capture {

using nlohmann::json;

struct Place {
  std::string text;  // "net.pt2", or the node in it

  [[noreturn]] void refuse(std::string_view what, std::string_view hint = {}) const;
  Place at(std::string_view inside) const;
};

// Parsed with a limit to how deep lists and objects may lie in one another.
json parse_model_json(std::string_view text, const Place& place);

const json& field(const json& object, std::string_view name, const Place& place);
const json* find_field(const json& object, std::string_view name);  // null: missing or null

std::string text_of(const json& value, std::string_view what, const Place& place);
int64_t integer_of(const json& value, std::string_view what, const Place& place);
double real_of(const json& value, std::string_view what, const Place& place);  // also "Infinity"
bool boolean_of(const json& value, std::string_view what, const Place& place);
const json& list_of(const json& value, std::string_view what, const Place& place);
const json& object_of(const json& value, std::string_view what, const Place& place);

// A value of one of several kinds is written as an object of one field: {"as_int": 3}.
struct Tagged {
  std::string_view tag;
  const json& value;
};
Tagged tagged(const json& value, std::string_view what, const Place& place);

}  // namespace renkei::capture
