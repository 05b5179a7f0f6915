#include "data/field_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/settings.h"

namespace renkei::data {
namespace {

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Error unknown(const std::string& what, const std::string& name,
              const std::vector<std::string>& known) {
  const auto near = nearest_name(name, known);
  return Error(ErrorCode::usage,
               fmt::format("data.fields: {} '{}'; there {} {}", what, name,
                           known.size() == 1 ? "is" : "are", fmt::join(known, ", ")),
               near ? fmt::format("did you mean {}?", *near)
                    : "renkei data info lists the fields of a data set");
}

}  // namespace

FieldMap parse_field_map(std::string_view text) {
  FieldMap map;
  if (text == "auto") return map;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const std::string_view input = trim(part.substr(0, equals));
    const std::string_view field =
        equals == std::string_view::npos ? std::string_view() : trim(part.substr(equals + 1));
    if (input.empty() || field.empty())
      throw Error(ErrorCode::usage, fmt::format("data.fields: '{}' is no INPUT=FIELD", part),
                  "write it as input=images,target=labels");
    if (std::ranges::count(map, input, &FieldMapping::input) > 0)
      throw Error(ErrorCode::usage,
                  fmt::format("data.fields: the input '{}' gets two fields", input),
                  "name each input once");
    map.push_back({std::string(input), std::string(field)});
  }
  return map;
}

std::vector<MappedField> map_fields(const FieldMap& map, const std::vector<std::string>& fields) {
  std::vector<MappedField> mapped;
  for (const auto& [input, field] : map) {
    const auto found = std::ranges::find(fields, field);
    if (found == fields.end()) throw unknown("the data has no field", field, fields);
    mapped.push_back({static_cast<size_t>(found - fields.begin()), input});
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool is_used = std::ranges::count(map, fields[i], &FieldMapping::field) > 0;
    const bool name_is_taken = std::ranges::count(map, fields[i], &FieldMapping::input) > 0;
    if (!is_used && !name_is_taken) mapped.push_back({i, fields[i]});
  }
  return mapped;
}

FieldMap match_inputs(const FieldMap& map, const std::vector<WantedInput>& inputs,
                      const std::vector<std::string>& fields) {
  std::vector<std::string> names;
  for (const WantedInput& input : inputs) names.push_back(input.name);
  for (const FieldMapping& mapping : map)
    if (std::ranges::count(names, mapping.input) == 0)
      throw unknown("the program has no input", mapping.input, names);
  map_fields(map, fields);  // all that it names are there

  FieldMap matched = map;
  const auto has_field = [&](const WantedInput& input) {
    return std::ranges::count(matched, input.name, &FieldMapping::input) > 0;
  };
  const auto is_free = [&](std::string_view field) {
    return std::ranges::count(fields, field) > 0 &&
           std::ranges::count(matched, field, &FieldMapping::field) == 0;
  };
  for (const WantedInput& input : inputs)
    if (!has_field(input) && is_free(input.name)) matched.push_back({input.name, input.name});
  std::vector<WantedInput> left;
  for (const WantedInput& input : inputs)
    if (!has_field(input)) left.push_back(input);
  const auto others = std::ranges::count(left, false, &WantedInput::target);
  for (const WantedInput& input : left) {
    const std::string_view usual = input.target ? kTarget : kInput;
    if ((!input.target && others > 1) || !is_free(usual))
      throw Error(
          ErrorCode::usage,
          fmt::format("no field of the data is the input '{}' of the program; there {} {}",
                      input.name, fields.size() == 1 ? "is" : "are", fmt::join(fields, ", ")),
          fmt::format("say which one it is: --set data.fields={}=NAME", input.name));
    matched.push_back({input.name, std::string(usual)});
  }
  return matched;
}

}  // namespace renkei::data
