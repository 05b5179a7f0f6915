#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renkei {

// Parses a text; what is wrong in it becomes a data Error that names the place: `file` and the
// line.
nlohmann::json parse_json(std::string_view text, const std::string& file);

// Reads the fields of a JSON object that someone may have written by hand. A field that is missing,
// of the wrong type or out of range is a data Error: "model.json: ops[3].forward_seconds must be a
// number from 0 to 1e12". The object must outlive the reader.
class JsonFields {
 public:
  // `place` is the file, and the way to the object in it.
  JsonFields(const nlohmann::json& object, std::string place);

  // Refuses a key that is none of these, with the nearest that is: what nobody reads would be
  // taken for said.
  void allow_only(const std::vector<std::string>& names) const;

  bool has(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t low, int64_t high) const;
  double real(std::string_view name, double low, double high) const;
  bool boolean(std::string_view name) const;
  std::string text(std::string_view name) const;
  // A name that may be written as a text or as a whole number: "7" and 7 are the same.
  std::string id(std::string_view name) const;
  std::vector<std::string> ids(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, int64_t low, int64_t high) const;
  std::vector<JsonFields> objects(std::string_view name) const;
  JsonFields object(std::string_view name) const;

  // The same for fields that may be left out (or be null).
  int64_t integer_or(std::string_view name, int64_t low, int64_t high, int64_t otherwise) const;
  double real_or(std::string_view name, double low, double high, double otherwise) const;
  bool boolean_or(std::string_view name, bool otherwise) const;
  std::string text_or(std::string_view name, std::string otherwise) const;

  [[noreturn]] void refuse(std::string_view name, std::string_view must) const;

 private:
  const nlohmann::json& field(std::string_view name) const;
  std::string place_of(std::string_view name) const;

  const nlohmann::json* object_;
  std::string place_;
};

// An id as it is best written in JSON: a number when it is one.
nlohmann::json json_id(const std::string& id);

}  // namespace renkei
