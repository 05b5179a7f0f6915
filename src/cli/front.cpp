#include "cli/front.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"

namespace renkei::cli {

bool needs_blas(const std::vector<std::string>& arguments) {
  return arguments.size() > 1 && (arguments[1] == "linpack" || arguments[1] == "check");
}

bool needs_torch(const std::vector<std::string>& arguments) {
  const auto word = [&](size_t i) { return i < arguments.size() ? arguments[i] : std::string(); };
  const std::string first = word(1), second = word(2);
  if (first == "--version") return false;
  static const std::set<std::string> without{
      "check", "jobs",     "linpack", "model",  "plan", "report",
      "run",   "simulate", "study",   "submit", "tune", "watch",
  };
  const bool alone =
      without.contains(first) || (first == "data" && !second.starts_with("-")) ||
      (first == "bench" && (second == "collectives" || second == "data" || second == "scaling"));
  return !alone || std::ranges::count(arguments, "--measure") > 0;
}

void become_program(const std::string& name, char** argv) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path program = self.parent_path() / name;
  execv(program.c_str(), argv);
  throw Error(ErrorCode::usage,
              fmt::format("can't start {}: {}", program.string(), std::strerror(errno)),
              "it belongs beside renkei: build or install it again");
}

}  // namespace renkei::cli
