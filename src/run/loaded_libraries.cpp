#include "run/loaded_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace renkei::run {

std::vector<std::string> mapped_libraries(std::string_view maps,
                                          const std::vector<std::string_view>& prefixes) {
  std::vector<std::string> found;
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    const size_t path_begins = line.find('/');
    if (path_begins == std::string_view::npos) continue;
    const std::string path(line.substr(path_begins));
    const std::string name = std::filesystem::path(path).filename().string();
    const bool wanted = std::ranges::any_of(
        prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (wanted && std::ranges::count(found, path) == 0) found.push_back(path);
  }
  return found;
}

namespace {

// Of the package that a libtorch lies in, as its version.py says; empty: there is none.
std::string version_beside(const std::filesystem::path& library) {
  const auto file = library.parent_path().parent_path() / "version.py";
  if (!std::filesystem::is_regular_file(file)) return {};
  const std::string text = read_file(file);
  const size_t begins = text.find("__version__ = '");
  if (begins == std::string::npos) return {};
  const size_t first = text.find('\'', begins) + 1;
  return text.substr(first, text.find('\'', first) - first);
}

// "2.13.0+cpu" and "2.13.0" are the same.
std::string release_of(const std::string& version) {
  return version.substr(0, version.find('+'));
}

}  // namespace

std::string check_libraries(std::string_view maps) {
  if (const auto torch = mapped_libraries(maps, {"libtorch_cpu.so"}); torch.size() > 1)
    throw Error(
        ErrorCode::usage,
        fmt::format("this process has loaded two PyTorch libraries: {}", fmt::join(torch, " and ")),
        "remove one of them from LD_LIBRARY_PATH and LD_PRELOAD, or build Renkei with the "
        "Python whose torch you use: make build PYTHON=/path/to/python");
  for (const std::string& library : mapped_libraries(maps, {"libtorch_cpu.so"}))
    if (const std::string version = version_beside(library);
        !version.empty() && release_of(version) != release_of(TORCH_VERSION))
      throw Error(ErrorCode::usage,
                  fmt::format("Renkei was built with PyTorch {}, but {} is of PyTorch {}",
                              TORCH_VERSION, library, version),
                  "build it again: make build");
  const auto openmp = mapped_libraries(maps, {"libgomp", "libomp", "libiomp5"});
  if (openmp.size() < 2) return {};
  return fmt::format(
      "two OpenMP libraries are loaded, {}: they do not know of each other's threads, which makes "
      "computing slower",
      fmt::join(openmp, " and "));
}

std::string check_loaded_libraries() {
  return check_libraries(read_file("/proc/self/maps"));
}

}  // namespace renkei::run
