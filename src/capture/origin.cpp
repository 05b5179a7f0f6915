#include "capture/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace renkei::capture {
namespace {

constexpr size_t kLongest = 300;  // a name beyond this is no name

bool is_of_torch(std::string_view path) {
  for (const std::string_view home : {"-packages/torch/", "/pytorch/torch/"})
    if (path.find(home) != std::string_view::npos) return true;
  return path.starts_with("torch/") || path.starts_with("<");
}

// `File "PATH", line N, in NAME` in one line, or nothing.
std::string frame(std::string_view line) {
  const size_t file = line.find("File \"");
  if (file == std::string_view::npos) return {};
  line.remove_prefix(file + 6);
  const size_t quote = line.find('"');
  if (quote == std::string_view::npos) return {};
  const std::string_view path = line.substr(0, quote);
  if (is_of_torch(path)) return {};
  constexpr std::string_view before_number = ", line ", before_name = ", in ";
  std::string_view rest = line.substr(quote + 1);
  if (!rest.starts_with(before_number)) return {};
  rest.remove_prefix(before_number.size());
  size_t digits = 0;
  while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
  const std::string_view number = rest.substr(0, digits);
  rest.remove_prefix(digits);
  const std::string_view name = path.substr(path.rfind('/') + 1);  // all of it without a slash
  if (name.size() + number.size() + rest.size() > kLongest) return {};
  if (!rest.starts_with(before_name)) return fmt::format("{}:{}", name, number);
  return fmt::format("{}:{} in {}", name, number, rest.substr(before_name.size()));
}

}  // namespace

std::string module_from_stack(std::string_view stack) {
  const std::string_view entry = stack.substr(stack.rfind(';') + 1);
  const size_t first = entry.find(',');
  if (first == std::string_view::npos) return {};
  const size_t second = entry.find(',', first + 1);
  std::string_view path = entry.substr(first + 1, second - first - 1);
  // A module that is called several times has its later calls marked: "layer@1".
  path = path.substr(0, path.find('@'));
  if (path.starts_with("_empty_nn_module_stack") || path.size() > kLongest) return {};
  return std::string(path);
}

std::string source_from_trace(std::string_view trace) {
  std::string found;
  while (!trace.empty()) {
    const size_t end = std::min(trace.find('\n'), trace.size());
    if (std::string line = frame(trace.substr(0, end)); !line.empty()) found = std::move(line);
    trace.remove_prefix(std::min(end + 1, trace.size()));
  }
  return found;
}

}  // namespace renkei::capture
