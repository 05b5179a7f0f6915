// renkei model export MODULE:CLASS … -o FILE.pt2: runs export_model.py (src/capture), which does
// the work, with the Python that Renkei was built with, or that RENKEI_PYTHON names.
#include <filesystem>

#include "cli/commands.h"
#include "cli/python.h"

namespace renkei::cli {
namespace {

// Installed beside the program, or where it was built.
std::filesystem::path find_script() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const auto installed = self.parent_path().parent_path() / "share/renkei/export_model.py";
  if (std::filesystem::exists(installed)) return installed;
  return std::filesystem::path(RENKEI_SOURCE_DIRECTORY) / "src/capture/export_model.py";
}

int run_export(const Invocation& invocation) {
  std::vector<std::string> words{find_python(), find_script().string()};
  // Behind "renkei model export".
  const std::vector<std::string>& given = invocation.arguments;
  for (size_t i = 3; i < given.size(); ++i) words.push_back(given[i]);
  if (words.size() == 2) words.push_back("--help");
  become_python(words);
}

}  // namespace

Command make_model_export_command() {
  return {.name = "model export",
          .summary = "write a PyTorch model as a .pt2 file: MODULE:CLASS --input 3x224x224 -o FILE",
          .sections = {},
          .run = [](Invocation& invocation) { return run_export(invocation); },
          .takes_anything = true};
}

}  // namespace renkei::cli
