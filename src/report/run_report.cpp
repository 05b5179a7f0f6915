#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json_lines.h"
#include "base/units.h"
#include "timeline/recorder.h"

namespace renkei::report {
namespace {

namespace fs = std::filesystem;

// Null for a file that is not there, or not whole.
nlohmann::json json_of(const fs::path& file) {
  if (!fs::exists(file)) return nullptr;
  auto value = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json() : value;
}

std::string operation_in_words(const timeline::RankTimeline& rank) {
  const timeline::Operation& last = rank.last;
  if (last.step < 0) return fmt::format("rank {} before its first step", rank.info.rank);
  std::string place =
      fmt::format("rank {} {} {}", rank.info.rank, last.inside() ? "in" : "after", last.name);
  if (last.stage >= 0)
    place += fmt::format(" of micro-batch {}, stage {},", last.index, last.stage);
  return place + fmt::format(" step {}", last.step);
}

std::string where_it_ended(const RunReport& run) {
  if (run.failure.is_object() && run.failure.contains("error"))
    return run.failure["error"].value("message", "it failed");
  if (run.ranks.empty()) return "there is no timeline, so nobody knows how far it came";
  int64_t steps = 0;
  for (const auto& rank : run.ranks)
    if (!rank.steps.empty()) steps = std::max(steps, rank.steps.back().step + 1);
  std::string text = fmt::format(
      "no end was written: it runs still, or was killed. {} step{} done; "
      "last seen after {}: ",
      steps, steps == 1 ? " was" : "s were", format_duration(run.wall_seconds));
  for (size_t r = 0; r < run.ranks.size() && r < 8; ++r)
    text += (r ? "; " : "") + operation_in_words(run.ranks[r]);
  return text;
}

// Phases as they were recorded, and steps; what is left of the wall time lies between steps.
std::vector<RunPart> parts_of(const timeline::RankTimeline& rank, double wall) {
  std::vector<RunPart> parts;
  const auto add = [&](std::string_view name, double seconds) {
    const auto found = std::ranges::find(parts, name, &RunPart::name);
    if (found == parts.end())
      parts.push_back({std::string(name), seconds});
    else
      found->seconds += seconds;
  };
  double accounted = 0;
  bool stepped = false;
  double in_steps = 0;
  for (const timeline::StepRecord& step : rank.steps) in_steps += step.times.seconds;
  for (const timeline::Event& event : rank.events) {
    if (event.step >= 0 || event.lane != timeline::kComputeLane) continue;
    if (!stepped && !rank.steps.empty() && event.begin >= rank.steps.front().begin) {
      add("steps", in_steps);
      stepped = true;
    }
    add(event.name, event.seconds());
    accounted += event.seconds();
  }
  if (!stepped && in_steps > 0) add("steps", in_steps);
  accounted += in_steps;
  // The ring may have dropped the start-up; the first step says when it was over.
  if (rank.dropped_events > 0 && !rank.steps.empty()) {
    double known = 0;
    for (const timeline::Event& event : rank.events)
      if (event.step < 0 && event.begin < rank.steps.front().begin) known += event.seconds();
    const double start = std::max(0.0, rank.steps.front().begin - known);
    parts.insert(parts.begin(), {"start-up", start});
    accounted += start;
  }
  parts.push_back({"between steps and phases", wall - accounted});
  return parts;
}

// Means over the steps whose operations are still there.
std::vector<OperationTime> operations_of(const std::vector<timeline::RankTimeline>& ranks) {
  std::map<std::string_view, OperationTime> found;
  double steps = 0;
  for (const auto& rank : ranks) {
    std::set<int64_t> seen;
    for (const timeline::Event& event : rank.events) {
      if (event.lane != timeline::kOperationLane) continue;
      seen.insert(event.step);
      OperationTime& one = found[event.name];
      one.seconds += event.seconds();
      one.calls += 1;
    }
    steps += static_cast<double>(seen.size());
  }
  std::vector<OperationTime> list;
  for (const auto& [name, one] : found)
    list.push_back({std::string(name), one.seconds / steps, one.calls / steps});
  std::ranges::stable_sort(list, std::greater<>(), &OperationTime::seconds);
  return list;
}

}  // namespace

void RunReport::set_summary(nlohmann::json its_summary) {
  summary = std::move(its_summary);
  status = Status::finished;
  ended.clear();
}

std::string RunReport::model() const {
  if (summary.is_object()) return summary.value("model", "");
  return config.is_object() ? config.value("model.name", "") : "";
}

double RunReport::samples_per_second() const {
  if (summary.is_object()) return summary.value("samples_per_second", 0.0);
  std::vector<double> rates;
  if (!ranks.empty())
    for (const timeline::StepRecord& step : ranks[0].steps)
      if (step.times.seconds > 0)
        rates.push_back(static_cast<double>(step.samples) / step.times.seconds);
  return timeline::quantile(std::move(rates), 0.5);
}

RunReport read_run(const fs::path& directory) {
  if (!fs::exists(directory / "config.toml") && !fs::exists(directory / "timeline"))
    throw Error(ErrorCode::data, fmt::format("there is no run in {}", directory.string()),
                "name a run directory, such as the newest in runs/");
  RunReport run;
  run.directory = fs::absolute(directory).lexically_normal();
  if (!run.directory.has_filename()) run.directory = run.directory.parent_path();
  run.summary = json_of(directory / "summary.json");
  run.plan = json_of(directory / "plan.json");
  run.failure = json_of(directory / "failure.json");
  if (fs::exists(directory / "metrics.jsonl"))
    read_json_lines(directory / "metrics.jsonl",
                    [&](const nlohmann::json& line) { run.metrics.push_back(line); });
  run.ranks = timeline::read_timeline(directory / "timeline");
  for (const auto& rank : run.ranks) run.wall_seconds = std::max(run.wall_seconds, rank.last_seen);
  if (run.failure.is_object())
    run.status = RunReport::Status::failed;
  else if (run.summary.is_object())
    run.status = RunReport::Status::finished;
  run.steps = recorded_steps(run.ranks);
  run.attribution = attribute(run.steps);
  run.what_ifs = what_if(run.steps, run.attribution);
  run.verdict = verdict_of(run.steps, run.attribution, run.what_ifs);
  if (!run.ranks.empty()) {
    run.wall_seconds = run.ranks[0].last_seen;
    run.parts = parts_of(run.ranks[0], run.wall_seconds);
    run.operations = operations_of(run.ranks);
  }
  if (run.status != RunReport::Status::finished) run.ended = where_it_ended(run);
  return run;
}

}  // namespace renkei::report
