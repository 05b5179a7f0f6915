#include "job/resume.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_lines.h"
#include "plan/plan_file.h"
#include "report/tensorboard.h"

namespace renkei::job {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& directory) {
  std::error_code none;
  return fs::is_regular_file(directory / "config.toml", none);
}

fs::path newest_run() {
  fs::path newest;
  std::error_code none;
  // Their names begin with the time.
  for (const auto& entry : fs::directory_iterator("runs", none))
    if (is_run(entry.path()) && entry.path().filename() > newest.filename()) newest = entry.path();
  if (newest.empty())
    throw Error(ErrorCode::usage, "there is no run in runs/ to go on with",
                "name the directory of a run: --resume DIR");
  return newest;
}

}  // namespace

fs::path find_run(const std::string& named) {
  const fs::path run = named.empty() ? newest_run() : fs::path(named);
  if (!is_run(run))
    throw Error(ErrorCode::usage, fmt::format("{} is not the directory of a run", run.string()),
                "it would have a config.toml; runs/ has those that were given no name");
  return fs::absolute(run).lexically_normal();
}

int ranks_of_run(const fs::path& run) {
  if (!fs::exists(run / "plan.json")) return 0;
  return plan::load_plan(run / "plan.json").ranks();
}

void take_over(Settings& settings, const fs::path& run) {
  settings.set("run.dir", run.string(), "--resume");
  if (settings.is_auto("train.batch") && fs::exists(run / "plan.json")) {
    const plan::Plan plan = plan::load_plan(run / "plan.json");
    settings.set("train.batch", std::to_string(plan.batch.global), "--resume");
    settings.set("train.batch_per_device", "auto", "--resume");
  }
}

Settings planning_settings(const Settings& settings, const fs::path& run, int ranks) {
  Settings planning = settings, before = settings;
  before.load_toml(run / "config.toml");
  if (before.text("train.plan") == settings.text("train.plan") && ranks_of_run(run) == ranks)
    planning.set("train.plan", (run / "plan.json").string(), "--resume");
  return planning;
}

void cut_records(const fs::path& run, int64_t step) {
  if (fs::exists(run / "metrics.jsonl")) {
    std::string kept;
    read_json_lines(run / "metrics.jsonl", [&](const nlohmann::json& line) {
      if (line.value("step", int64_t{0}) < step) kept += line.dump() + "\n";
    });
    write_file_atomically(run / "metrics.jsonl", kept);
  }
  for (const auto& entry : fs::directory_iterator(run))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      report::cut_events(entry.path(), step);
}

}  // namespace renkei::job
