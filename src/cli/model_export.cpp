// renkei model export MODULE:CLASS … -o FILE.pt2: runs export_model.py (src/capture), which does
// the work, with the Python that Renkei was built with, or that RENKEI_PYTHON names.
//
// renkei model export RUN|FILE -o FILE: saved weights for other programs, by the ending of the
// name.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/version.h"
#include "capture/open_network.h"
#include "capture/weights_file.h"
#include "checkpoint/weights.h"
#include "cli/commands.h"
#include "cli/python.h"
#include "networks/settings.h"

namespace renkei::cli {
namespace {

// Installed beside the program, or where it was built.
std::filesystem::path find_script() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  auto installed = self.parent_path().parent_path() / "share/renkei/export_model.py";
  if (std::filesystem::exists(installed)) return installed;
  return std::filesystem::path(RENKEI_SOURCE_DIRECTORY) / "src/capture/export_model.py";
}

struct Weights {
  std::filesystem::path from;  // a run, a checkpoint or a file
  std::string to, network;
  bool quiet = false, json = false;
};

// What was asked for, where the first word is something that exists, and not MODULE:CLASS.
std::optional<Weights> weights_to_export(const std::vector<std::string>& words) {
  std::error_code none;
  if (words.empty() || !std::filesystem::exists(words[0], none)) return {};
  Weights weights{.from = words[0], .to = {}, .network = {}};
  for (size_t i = 1; i < words.size(); ++i) {
    weights.quiet |= words[i] == "--quiet";
    weights.json |= words[i] == "--json";
    if (words[i] == "--quiet" || words[i] == "--json") continue;
    std::string* value = words[i] == "-o" || words[i] == "--output" ? &weights.to
                         : words[i] == "--network"                  ? &weights.network
                                                                    : nullptr;
    if (!value || i + 1 == words.size())
      throw Error(ErrorCode::usage,
                  fmt::format("renkei model export {}: '{}' is not understood", words[0], words[i]),
                  "write: renkei model export RUN -o FILE.safetensors [--network FILE.pt2]");
    *value = words[++i];
  }
  if (weights.to.empty())
    throw Error(ErrorCode::usage, "where the weights are to go is missing",
                "add -o FILE.safetensors, or a name that ends with .pt, .pth, .bin or .pt2");
  return weights;
}

int export_weights(const Invocation& invocation, Weights weights) {
  capture::NamedTensors tensors = checkpoint::read_weights(weights.from);
  const std::filesystem::path config = weights.from / "config.toml";
  if (std::filesystem::exists(config)) {
    Settings settings = invocation.settings;
    settings.load_toml(config);
    const std::string& model = settings.text("model.name");
    if (weights.network.empty() && networks::is_model_file(model)) weights.network = model;
    // A checkpoint has tied weights under one name.
    tensors = capture::fit_weights(capture::open_network(settings).network.training,
                                   std::move(tensors), weights.from.string());
  }
  capture::write_weights_file(weights.to, tensors, weights.network);
  if (weights.json)
    fmt::print("{}\n", nlohmann::json{{"command", "model export"},
                                      {"version", kVersion},
                                      {"tensors", tensors.size()},
                                      {"output", weights.to}}
                           .dump(2));
  else if (!weights.quiet)
    fmt::print("{} tensors written: {}\n", tensors.size(), weights.to);
  return 0;
}

int run_export(const Invocation& invocation) {
  // Behind "renkei model export".
  const std::vector<std::string>& given = invocation.arguments;
  const std::vector<std::string> rest(given.begin() + 3, given.end());
  if (auto weights = weights_to_export(rest)) return export_weights(invocation, *weights);
  std::vector<std::string> words{find_python(), find_script().string()};
  words.insert(words.end(), rest.begin(), rest.end());
  if (words.size() == 2) words.push_back("--help");
  become_python(words);
}

}  // namespace

Command make_model_export_command() {
  return {.name = "model export",
          .summary =
              "write a PyTorch model as a .pt2 file: MODULE:CLASS --input 3x224x224 -o FILE; or "
              "saved weights: RUN|FILE -o FILE.safetensors|.pt|.pt2 [--network FILE.pt2]",
          .sections = {},
          .run = [](Invocation& invocation) { return run_export(invocation); },
          .takes_anything = true};
}

}  // namespace renkei::cli
