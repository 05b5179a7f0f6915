#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace renkei {

// A file of JSON objects, one a line, that is readable after a crash at any moment: each line is
// one write, so at most the last line is torn. What an earlier crash left torn is cut off (or, when
// only its end of line is missing, completed) before the first new line.
class JsonLinesWriter {
 public:
  explicit JsonLinesWriter(const std::filesystem::path& path);

  // `json_object` is the text of one object, without line breaks.
  void append(std::string_view json_object);

 private:
  AppendFile file_;
};

// Calls `use` with each object in order. A torn last line is passed over; any other line that is
// not a JSON object is a data Error with the file and the number of the line.
void read_json_lines(const std::filesystem::path& path,
                     const std::function<void(const nlohmann::json&)>& use);
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path);

}  // namespace renkei
