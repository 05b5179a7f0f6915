// renkei bench scaling: the same training on more and more ranks, as the papers measured it, with
// the reason for what is lost. Each case is a run of its own, in a directory of its own.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "report/page_data.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string ranks = "1:2:+1", scaling = "strong";
  int repeat = 3;
  fs::path output, baseline;
  double tolerance = 5;
};

struct Case {
  int ranks = 1;
  double samples_per_second = 0, spread = 0;  // median of the repeats; (most - least) / median
  fs::path directory;                         // of the median one
  nlohmann::json summary;
};

void run_train(const std::vector<std::string>& words, const fs::path& log) {
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorCode::bug, "could not start a process");
  if (child == 0) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    if (!std::freopen(log.c_str(), "w", stdout)) ::_exit(127);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(ErrorCode::communication, "a run of the sweep failed",
                "see its directory: " + log.parent_path().string());
}

Case measure(const Flags& flags, const Settings& settings, const fs::path& directory, int ranks) {
  const int64_t batch = settings.integer_unless_auto("train.batch").value_or(64) *
                        (flags.scaling == "weak" ? ranks : 1);
  std::vector<Case> repeats;
  for (int i = 0; i < flags.repeat; ++i) {
    Case one{.ranks = ranks, .directory = directory / fmt::format("{}-ranks-{}", ranks, i + 1)};
    make_directories(directory / "logs");
    run_train({fs::read_symlink("/proc/self/exe"), "train", "--config",
               (directory / "settings.toml").string(), "-n", std::to_string(ranks), "--batch",
               std::to_string(batch), "--run-dir", one.directory.string(), "--quiet", "--json"},
              directory / fmt::format("logs/{}-ranks-{}.json", ranks, i + 1));
    one.summary = parse_json(read_file(one.directory / "summary.json"), one.directory.string());
    one.samples_per_second = one.summary.at("samples_per_second");
    repeats.push_back(std::move(one));
  }
  std::ranges::sort(repeats, {}, &Case::samples_per_second);
  Case median = repeats[repeats.size() / 2];
  median.spread = (repeats.back().samples_per_second - repeats.front().samples_per_second) /
                  median.samples_per_second;
  return median;
}

nlohmann::json row_of(const Case& one, double per_rank) {
  return {{"model", one.summary.at("model")},
          {"ranks", one.ranks},
          {"hosts", one.summary.at("hosts")},
          {"plan", one.summary.at("plan").at("kind")},
          {"batch", one.summary.at("batch")},
          {"samples_per_second", one.samples_per_second},
          {"spread", one.spread},
          {"efficiency", one.samples_per_second / (one.ranks * per_rank)},
          {"step_seconds", one.summary.at("step_seconds").at("median")},
          {"time", one.summary.at("time")},
          {"run_dir", one.directory.string()},
          {"peers", nlohmann::json::object()},
          {"ratio", nullptr}};
}

// Rows that are slower than in an earlier result by more than the tolerance, in words.
std::vector<std::string> regressions(const nlohmann::json& rows, const Flags& flags) {
  std::vector<std::string> list;
  const nlohmann::json earlier = parse_json(read_file(flags.baseline), flags.baseline.string());
  for (const nlohmann::json& row : rows)
    for (const nlohmann::json& before : earlier.at("rows")) {
      if (before.at("ranks") != row.at("ranks") || before.at("model") != row.at("model")) continue;
      const double now = row.at("samples_per_second"), then = before.at("samples_per_second");
      if (now < then * (1 - flags.tolerance / 100))
        list.push_back(fmt::format("{} ranks: {:.0f} samples/s, {:.1f} % less than {:.0f}",
                                   row.at("ranks").get<int>(), now, 100 * (1 - now / then), then));
    }
  return list;
}

int run(Invocation& invocation, Flags flags) {
  const std::string& wanted = invocation.settings.text("run.dir");
  const fs::path directory = fs::absolute(wanted.empty() ? "runs/scaling" : wanted);
  if (fs::exists(directory / "settings.toml"))
    throw Error(ErrorCode::usage, directory.string() + " already holds a sweep",
                "choose another --run-dir, or remove that one");
  make_directories(directory);
  Settings settings = invocation.settings;
  settings.set("run.dir", "", "renkei bench scaling");
  write_file_atomically(directory / "settings.toml", settings.to_toml());
  std::vector<report::RunReport> reports;
  nlohmann::json rows = nlohmann::json::array();
  report::Table table({{"ranks", report::Align::right},
                       {"samples/s", report::Align::right},
                       {"spread", report::Align::right},
                       {"efficiency", report::Align::right},
                       {"step", report::Align::right},
                       {"why"}});
  double per_rank = 0;
  for (const int64_t ranks : parse_sweep(flags.ranks)) {
    const Case one = measure(flags, settings, directory, static_cast<int>(ranks));
    if (per_rank == 0) per_rank = one.samples_per_second / one.ranks;
    rows.push_back(row_of(one, per_rank));
    reports.push_back(report::read_run(one.directory));
    table.add_row({std::to_string(ranks), fmt::format("{:.0f}", one.samples_per_second),
                   fmt::format("{:.1f} %", 100 * one.spread),
                   fmt::format("{:.0f} %", 100 * rows.back().at("efficiency").get<double>()),
                   format_duration(rows.back().at("step_seconds")),
                   reports.back().verdict.sentence});
    if (!invocation.quiet)
      fmt::print(stderr, "{} ranks: {:.0f} samples/s\n", ranks, one.samples_per_second);
  }
  if (flags.output.empty()) flags.output = directory / "report.html";
  write_file_atomically(flags.output, report::page_of(reports));
  const nlohmann::json result{{"command", invocation.command},
                              {"version", kVersion},
                              {"scaling", flags.scaling},
                              {"run_dir", directory.string()},
                              {"report", fs::absolute(flags.output).string()},
                              {"rows", rows}};
  write_file_atomically(directory / "scaling.json", result.dump(2) + "\n");
  if (invocation.json)
    fmt::print("{}\n", result.dump(2));
  else
    fmt::print("{}\n{}\n", table.text(), flags.output.string());
  if (flags.baseline.empty()) return 0;
  const auto slower = regressions(rows, flags);
  for (const std::string& sentence : slower) fmt::print(stderr, "slower: {}\n", sentence);
  return slower.empty() ? 0 : 1;
}

}  // namespace

Command make_bench_scaling_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "bench scaling",
          .summary = "the same training on more and more ranks, and why it is not faster",
          .sections = {"model", "data", "train", "optim", "compute", "comm", "plan"},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("--ranks", flags->ranks, "a sweep, such as 1:4:+1 or 1:8:*2")
                    .show_default();
                arguments
                    .option("--scaling", flags->scaling,
                            "strong: one batch for all ranks; weak: --batch for each")
                    .one_of({"strong", "weak"})
                    .show_default();
                arguments.option("--repeat", flags->repeat, "runs of each case; the median counts")
                    .range(1, 1000)
                    .show_default();
                arguments.option("-o,--output", flags->output,
                                 "the page; by itself report.html in the run directory");
                arguments.option("--baseline", flags->baseline,
                                 "an earlier scaling.json: what is slower than in it fails");
                arguments.option("--tolerance", flags->tolerance, "in percent")
                    .range(0.0, 100.0)
                    .show_default();
              },
          .run = [flags](Invocation& invocation) { return run(invocation, *flags); }};
}

}  // namespace renkei::cli
