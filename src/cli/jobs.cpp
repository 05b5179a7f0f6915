#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "queue/process.h"
#include "queue/runs.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

nlohmann::json json_of(const queue::Run& run) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  return {{"run", run.name},
          {"state", run.state},
          {"step", or_null(run.step)},
          {"steps", or_null(run.steps)},
          {"seconds_left", or_null(run.seconds_left)},
          {"nodes", run.where}};
}

int run(const Invocation& invocation, const std::filesystem::path& directory) {
  std::vector<queue::Run> runs = queue::list_runs(directory, wall_seconds());
  const queue::Output jobs =
      queue::ask({"squeue", "--me", "--noheader", "--array", "--format=%i|%j|%T|%N"});
  if (jobs.exit_code == 0) queue::add_queue(runs, jobs.text);
  if (invocation.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const queue::Run& one : runs) rows.push_back(json_of(one));
    fmt::print("{}\n",
               nlohmann::json{{"command", "jobs"}, {"version", kVersion}, {"rows", rows}}.dump(2));
    return 0;
  }
  if (runs.empty()) {
    fmt::print("no runs in {}, and none in a queue\n", directory.string());
    return 0;
  }
  report::Table table({{"run"},
                       {"state"},
                       {"step", report::Align::right},
                       {"time left", report::Align::right},
                       {"nodes"}});
  for (const queue::Run& one : runs)
    table.add_row(
        {one.name, one.state,
         one.step ? fmt::format("{}{}", *one.step, one.steps ? fmt::format("/{}", *one.steps) : "")
                  : "",
         one.seconds_left ? format_duration(*one.seconds_left) : "", one.where});
  fmt::print("{}", table.text());
  return 0;
}

}  // namespace

Command make_jobs_command() {
  const auto directory = std::make_shared<std::filesystem::path>("runs");
  return {.name = "jobs",
          .summary = "list runs and jobs of the queue: state, step, time left",
          .sections = {},
          .add_flags =
              [directory](Arguments& arguments) {
                arguments.option("directory", *directory, "where the runs are").show_default();
              },
          .run = [directory](Invocation& invocation) { return run(invocation, *directory); }};
}

}  // namespace renkei::cli
