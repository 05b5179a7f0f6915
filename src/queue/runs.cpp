#include "queue/runs.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json_lines.h"

namespace renkei::queue {
namespace {

constexpr double kSilent = 300;  // seconds without a step after which a run is given up
constexpr size_t kPaceSteps = 20;

double modified(const std::filesystem::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? static_cast<double>(status.st_mtime) : 0;
}

std::optional<int64_t> configured_steps(const std::filesystem::path& config) {
  // The one line that counts, of a file that renkei wrote.
  std::istringstream lines(read_file(config));
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) section = line;
    if (section == "[train]" && line.starts_with("steps = ")) {
      const int64_t steps = std::strtoll(line.c_str() + 8, nullptr, 10);
      if (steps > 0) return steps;
    }
  }
  return std::nullopt;
}

void read_metrics(Run& run, const std::filesystem::path& file) {
  std::vector<double> seconds;
  read_json_lines(file, [&](const nlohmann::json& line) {
    if (!line.contains("step") || !line.contains("seconds")) return;
    run.step = line.at("step").get<int64_t>();
    seconds.push_back(line.at("seconds").get<double>());
  });
  if (seconds.empty() || !run.steps || !run.step) return;
  std::vector<double> last(
      seconds.end() - static_cast<std::ptrdiff_t>(std::min(kPaceSteps, seconds.size())),
      seconds.end());
  std::ranges::sort(last);
  run.seconds_left =
      static_cast<double>(std::max<int64_t>(0, *run.steps - *run.step)) * last[last.size() / 2];
}

std::string state_of(const std::filesystem::path& directory, double now) {
  if (std::filesystem::exists(directory / "failure.json")) return "failed";
  if (std::filesystem::exists(directory / "summary.json")) {
    const auto summary =
        nlohmann::json::parse(read_file(directory / "summary.json"), nullptr, false);
    return summary.is_object() && !summary.value("finished", true) ? "stopped" : "finished";
  }
  return now - modified(directory / "metrics.jsonl") < kSilent ? "running" : "interrupted";
}

}  // namespace

std::vector<Run> list_runs(const std::filesystem::path& directory, double now) {
  std::vector<Run> runs;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing)) {
    if (!std::filesystem::exists(entry.path() / "config.toml")) continue;
    Run run{.name = entry.path().filename(), .state = state_of(entry.path(), now)};
    try {
      run.steps = configured_steps(entry.path() / "config.toml");
      if (std::filesystem::exists(entry.path() / "metrics.jsonl"))
        read_metrics(run, entry.path() / "metrics.jsonl");
    } catch (const Error&) {
      run.state = "damaged";
    }
    if (run.state != "running") run.seconds_left.reset();
    runs.push_back(std::move(run));
  }
  std::ranges::sort(runs, {}, &Run::name);
  return runs;
}

void add_queue(std::vector<Run>& runs, const std::string& squeue_lines) {
  std::istringstream lines(squeue_lines);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    if (cells.size() < 3) continue;
    cells.resize(4);
    std::string state = cells[2];
    std::ranges::transform(state, state.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto run = std::ranges::find(runs, "slurm-" + cells[0], &Run::name);
    if (run == runs.end()) {
      runs.push_back({.name = fmt::format("job {} {}", cells[0], cells[1]),
                      .state = state,
                      .where = cells[3]});
    } else {
      run->state = state;
      run->where = cells[3];
    }
  }
}

}  // namespace renkei::queue
