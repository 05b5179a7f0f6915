#include "cli/saved_model.h"

#include <fmt/format.h>

#include "base/error.h"
#include "job/resume.h"

namespace renkei::cli {

void add_run_argument(Arguments& arguments, std::string& run) {
  arguments.option("run", run, "a run, for its network, data and weights").value_name("RUN");
}

std::filesystem::path settings_of_run(const std::string& run) {
  return run.empty() ? std::filesystem::path() : job::find_run(run) / "config.toml";
}

void use_weights_of_run(Settings& settings, const std::string& run) {
  // Those that it ended with; while it is under way, those of its newest checkpoint.
  if (!run.empty()) settings.set("model.weights", job::find_run(run).string(), "RUN");
  if (settings.text("model.weights").empty() && !settings.text("model.name").ends_with(".pt2"))
    throw Error(ErrorCode::usage, "there are no weights to use",
                "name a run, or give a file: --set model.weights=FILE.safetensors");
}

}  // namespace renkei::cli
