#include "base/json_lines.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace renkei {
namespace {

constexpr int64_t kBlockBytes = 64 * 1024;

// A discarded value when the text is not exactly one JSON object.
nlohmann::json parse_object(std::string_view text) {
  auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_object() ? value : nlohmann::json(nlohmann::json::value_t::discarded);
}

// What follows the last end of line, found from the end because the file may be large.
std::string read_tail(std::ifstream& file, int64_t size_bytes) {
  std::string tail;
  for (int64_t end = size_bytes; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kBlockBytes);
    std::string block(static_cast<size_t>(end - begin), '\0');
    file.seekg(begin);
    file.read(block.data(), end - begin);
    const size_t line_end = block.rfind('\n');
    if (line_end != std::string::npos) return block.substr(line_end + 1) + tail;
    tail.insert(0, block);
    end = begin;
  }
  return tail;
}

// Returns the path, so that the file is mended before a member opens it.
const std::filesystem::path& mend_last_line(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return path;
  errno = 0;
  const auto size_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  const std::string tail = read_tail(file, size_bytes);
  // Cutting by what could not be read would destroy good lines.
  if (!file) throw_file_error("read", path, errno ? errno : EIO);
  if (tail.empty()) return path;
  if (!parse_object(tail).is_discarded())
    AppendFile(path).append("\n");
  else
    AppendFile(path).cut(size_bytes - static_cast<int64_t>(tail.size()));
  return path;
}

}  // namespace

JsonLinesWriter::JsonLinesWriter(const std::filesystem::path& path) : file_(mend_last_line(path)) {}

void JsonLinesWriter::append(std::string_view json_object) {
  if (json_object.empty() || json_object.find('\n') != std::string_view::npos)
    throw Error(ErrorCode::bug, fmt::format("a record for {} is empty or has a line break in it",
                                            file_.path().string()));
  file_.append(std::string(json_object) + '\n');
}

void read_json_lines(const std::filesystem::path& path,
                     const std::function<void(const nlohmann::json&)>& use) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_file_error("read", path, errno);
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    const bool ended = !file.eof();
    const nlohmann::json object = parse_object(line);
    if (!object.is_discarded())
      use(object);
    else if (ended)
      throw Error(ErrorCode::data,
                  fmt::format("line {} of {} is not a JSON object", number, path.string()),
                  "the file was damaged after it was written; take that line out to read the rest");
  }
  // Reading a directory, or a disk that fails, ends the loop too.
  if (file.bad()) throw_file_error("read", path, errno);
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> objects;
  read_json_lines(path, [&](const nlohmann::json& object) { objects.push_back(object); });
  return objects;
}

}  // namespace renkei
