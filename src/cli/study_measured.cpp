#include "cli/study_measured.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"

namespace renkei::cli {
namespace {

// A directory for what the runs leave behind, gone at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "renkei-study-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(ErrorCode::data, "can't make a directory for the runs of the study: " + name,
                  "set TMPDIR to a directory that can be written");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// What this program prints with --json.
nlohmann::json run_renkei(const std::string& arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format("'{}' {} --json --quiet 2>/dev/null", self, arguments);
  FILE* const output = popen(command.c_str(), "r");
  if (!output) throw Error(ErrorCode::bug, "can't start " + command);
  std::string text;
  char piece[4096];
  while (const size_t got = fread(piece, 1, sizeof piece, output)) text.append(piece, got);
  const int status = pclose(output);
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (status != 0 || json.is_discarded())
    throw Error(ErrorCode::usage, fmt::format("a run of the study failed: renkei {}", arguments),
                "run it to see why, or leave measurements out: --simulated-only");
  return json;
}

}  // namespace

void measure_flow(study::Study& study) {
  const Scratch scratch;
  constexpr int kSteps = 40;
  for (const int ranks : {1, 2, 3, 4}) {
    const double begin = now_seconds();
    const nlohmann::json run = run_renkei(fmt::format(
        "train --model mlp --set model.hidden=512 --set model.layers=10 --data random --batch 64 "
        "--steps {} -n {} --threads 1 --run-dir '{}'",
        kSteps, ranks, scratch / std::to_string(ranks)));
    const double all = now_seconds() - begin;
    const double step = run["step_seconds"]["median"].get<double>();
    study.rows.push_back({.what = fmt::format("step on {} ranks of this machine", ranks),
                          .unit = "ms",
                          .measured = 1e3 * step});
    study.rows.push_back({.what = fmt::format("  start-up and end, {} ranks", ranks),
                          .unit = "s",
                          .measured = all - kSteps * step});
  }
}

void measure_mn1(study::Study& study) {
  const Scratch scratch;
  double alone = 0;
  for (const int ranks : {1, 2}) {
    const nlohmann::json run = run_renkei(fmt::format(
        "train --model resnet50 --set model.image_size=96 --data random --batch-per-device 4 "
        "--steps 6 -n {} --threads 1 --run-dir '{}'",
        ranks, scratch / std::to_string(ranks)));
    const double rate = 4 * ranks / run["step_seconds"]["median"].get<double>();
    if (ranks == 1) alone = rate;
    study.rows.push_back(
        {.what = fmt::format("ResNet-50 (96 x 96 pixels) on {} ranks of this machine", ranks),
         .unit = "images/s",
         .measured = rate});
    if (ranks == 2)
      study.rows.push_back({.what = "scaling efficiency on 2 ranks of this machine",
                            .unit = "%",
                            .measured = 100 * rate / (2 * alone)});
  }
}

void measure_tsubame3(study::Study& study) {
  const Scratch scratch;
  const std::string data = scratch / "data";
  run_renkei(
      fmt::format("data synth '{}' --shards --images 3000 --test-images 0 --size 256", data));
  const nlohmann::json info = run_renkei(fmt::format("data info '{}'", data));
  const auto bytes = info["bytes"].get<int64_t>();
  for (const double share : {0.5, 4.0}) {
    const auto memory = static_cast<int64_t>(static_cast<double>(bytes) / share);
    const nlohmann::json run = run_renkei(fmt::format(
        "bench data '{}' --batch 32 --side 224 --epochs 2 --memory-limit {} --threads 1", data,
        memory));
    study.rows.push_back(
        {.what = fmt::format("this machine reads and decodes, data set {} x memory", share),
         .unit = "images/s",
         .measured = run["rows"][0]["samples_per_second"].get<double>()});
  }
  // A device so fast that a loader on one core can't follow.
  const nlohmann::json run = run_renkei(fmt::format(
      "bench data '{}' --batch 32 --side 224 --epochs 1 --accelerator 10ms --threads 1", data));
  study.rows.push_back({.what = "a device with 3,200 images/s, fed by one core here: busy",
                        .unit = "%",
                        .measured = 100 * run["rows"][0]["accelerator_utilisation"].get<double>()});
}

}  // namespace renkei::cli
