#include "cli/python.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace renkei::cli {

std::string find_python() {
  const char* named = std::getenv("RENKEI_PYTHON");
  return named ? named : RENKEI_BUILD_PYTHON;
}

void become_python(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw Error(ErrorCode::usage, fmt::format("can't start {}: {}", words[0], std::strerror(errno)),
              "name a Python that has torch and your model in RENKEI_PYTHON");
}

}  // namespace renkei::cli
