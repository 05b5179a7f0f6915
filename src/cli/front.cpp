#include "cli/front.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace renkei::cli {

bool needs_torch(const std::vector<std::string>& arguments) {
  const auto word = [&](size_t i) { return i < arguments.size() ? arguments[i] : std::string(); };
  const std::string first = word(1), second = word(2);
  if (first == "--version") return false;
  const bool alone = first == "plan" || first == "simulate" || first == "model" ||
                     (first == "study" && !second.starts_with("-")) ||
                     (first == "data" && !second.starts_with("-")) ||
                     (first == "bench" && (second == "collectives" || second == "data"));
  return !alone || std::ranges::count(arguments, "--measure") > 0;
}

void become_torch_program(char** argv) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path program = self.parent_path() / "renkei-torch";
  execv(program.c_str(), argv);
  throw Error(ErrorCode::usage,
              fmt::format("can't start {}: {}", program.string(), std::strerror(errno)),
              "it belongs beside renkei: build or install it again");
}

}  // namespace renkei::cli
