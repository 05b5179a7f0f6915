// renkei report: what run directories tell, as one page or as tables.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/version.h"
#include "cli/commands.h"
#include "report/page_data.h"
#include "timeline/chrome_trace.h"

namespace renkei::cli {
namespace {

struct Flags {
  std::vector<std::string> runs;
  std::filesystem::path output;
  std::string format = "html";
};

std::string text_of(const Flags& flags, const std::vector<report::RunReport>& runs) {
  if (flags.format == "html") return report::page_of(runs);
  if (flags.format == "md") return report::markdown_of(runs);
  if (flags.format == "csv") return report::csv_of(runs);
  nlohmann::json list = nlohmann::json::array();
  for (const report::RunReport& run : runs) list.push_back(report::tables_of(run));
  return nlohmann::json{{"command", "report"}, {"version", kVersion}, {"runs", list}}.dump(2) +
         "\n";
}

int run(Invocation& invocation, Flags flags) {
  if (invocation.json) flags.format = "json";
  std::vector<report::RunReport> runs;
  for (const std::string& directory : flags.runs) {
    runs.push_back(report::read_run(directory));
    // A run that did not come to its end left that to us.
    if (!runs.back().ranks.empty() &&
        !std::filesystem::exists(runs.back().directory / "timeline.json"))
      timeline::write_chrome_trace(runs.back().ranks, runs.back().directory / "timeline.json");
  }
  const std::string text = text_of(flags, runs);
  if (flags.output.empty() && flags.format == "html")
    flags.output = runs.front().directory / "report.html";
  if (flags.output.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  write_file_atomically(flags.output, text);
  if (invocation.quiet) return 0;
  for (const report::RunReport& one : runs) {
    if (!one.ended.empty()) fmt::print("{}: {}\n", one.name(), one.ended);
    fmt::print("{}: {}\n", one.name(), one.verdict.sentence);
  }
  fmt::print("{}\n", std::filesystem::absolute(flags.output).string());
  return 0;
}

}  // namespace

Command make_report_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "report",
          .summary = "where did the time go? One page, or tables, from run directories",
          .sections = {},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("runs", flags->runs, "run directories; several are compared")
                    .required();
                arguments.option("-o,--output", flags->output,
                                 "the file to write; by itself report.html in the first run");
                arguments.option("--format", flags->format, "form of the report")
                    .one_of({"html", "md", "json", "csv"});
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
