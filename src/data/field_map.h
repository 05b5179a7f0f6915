#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/field.h"

namespace renkei::data {

// The setting data.fields, "input=images,target=labels": which field an input of the program gets.
// Inputs that are not in it get the field of their own name.
struct FieldMapping {
  std::string input;  // of the program
  std::string field;  // of the data

  bool operator==(const FieldMapping&) const = default;
};
using FieldMap = std::vector<FieldMapping>;

// "auto" is the empty one. A usage Error for what is no NAME=FIELD, and for an input named twice.
FieldMap parse_field_map(std::string_view text);

// The fields as the program calls them, and from which each comes: a field that an input is mapped
// to has the input's name, once for each; the others keep theirs, except those whose name was given
// away. A usage Error names a field that is not there, and the nearest that is.
struct MappedField {
  size_t field;  // of the data
  std::string name;
};
std::vector<MappedField> map_fields(const FieldMap& map, const std::vector<std::string>& fields);

// What a program takes of a sample.
struct WantedInput {
  std::string name;
  bool target = false;  // what a loss is computed from

  bool operator==(const WantedInput&) const = default;
};

// The field of each input: as the map says; else the one of its name; else "target" for the target,
// and "input" for the only other one that is left. A usage Error names an input that gets none, and
// one of the map that the program does not have.
FieldMap match_inputs(const FieldMap& map, const std::vector<WantedInput>& inputs,
                      const std::vector<std::string>& fields);

}  // namespace renkei::data
