#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/version.h"
#include "check/acceptance.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/ranks.h"
#include "comm/collectives/broadcast.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

struct Flags {
  int level = 2;
  std::filesystem::path save, baseline, page;
};

std::string table_of(const std::vector<check::Finding>& findings) {
  report::Table table({{"check"},
                       {"status"},
                       {"rank", report::Align::right},
                       {"host"},
                       {"value", report::Align::right},
                       {"expected"},
                       {"reason"}});
  for (const check::Finding& f : findings)
    table.add_row(
        {f.name, std::string(name_of(f.status)), f.rank ? std::to_string(*f.rank) : "", f.host,
         f.value ? fmt::format("{:.4g}{}{}", *f.value, f.unit.empty() ? "" : " ", f.unit) : "",
         f.expected, f.reason});
  return table.text();
}

void print(const Invocation& invocation, const RankContext& context, int level,
           const std::vector<check::Finding>& findings) {
  const check::Status status = check::overall(findings);
  if (!invocation.json) {
    fmt::print("{}\n{}\n", table_of(findings), name_of(status));
    return;
  }
  nlohmann::json checks = nlohmann::json::array();
  for (const check::Finding& finding : findings) checks.push_back(json_of(finding));
  fmt::print("{}\n", nlohmann::json{{"command", "check"},
                                    {"version", kVersion},
                                    {"ranks", context.world.transport().size()},
                                    {"hosts", context.world.hosts()},
                                    {"threads_per_rank", context.threads},
                                    {"level", level},
                                    {"status", name_of(status)},
                                    {"checks", checks}}
                         .dump(2));
}

// Rank 0's part: judge, write, print. Returns the number of failures.
int64_t conclude(const Invocation& invocation, const RankContext& context, const Flags& flags,
                 const check::Measurements& measured, double tolerance) {
  std::vector<check::Finding> findings = check::judge(measured, tolerance);
  if (!flags.baseline.empty())
    for (const check::Finding& finding : check::compare(
             check::describe(measured), cluster::load_description(flags.baseline), tolerance))
      findings.push_back(finding);
  if (!flags.save.empty())
    write_file_atomically(flags.save, cluster::format_description(check::describe(measured)));
  if (!flags.page.empty()) write_file_atomically(flags.page, check::page_of(measured, findings));
  print(invocation, context, flags.level, findings);
  std::fflush(stdout);
  return std::ranges::count(findings, check::Status::fail, &check::Finding::status);
}

void run_as_rank(Invocation& invocation, RankContext& context, const Flags& flags) {
  comm::Transport& transport = context.world.transport();
  auto options = check::options_from(invocation.settings, flags.level, context.threads);
  if (!invocation.quiet)
    options.progress = [](const std::string& what) { fmt::print(stderr, "check: {}\n", what); };
  const check::Measurements measured = check::measure(transport, options);
  int64_t failures = 0;
  if (transport.rank() == 0)
    failures = conclude(invocation, context, flags, measured, options.tolerance);
  comm::broadcast(transport, std::span(&failures, 1), 0, {.operation = "verdict of the check"});
  if (failures > 0)
    throw FailedResult(fmt::format("{} checks failed", failures),
                       "the table on stdout names the ranks, hosts and links, and why");
}

void check_flags(const Flags& flags) {
  if (flags.level < 2 && (!flags.save.empty() || !flags.baseline.empty()))
    throw Error(ErrorCode::usage, "level 1 measures nothing that could be saved or compared",
                "use --level 2 with --save and --baseline");
  if (!flags.baseline.empty()) cluster::load_description(flags.baseline);
}

}  // namespace

Command make_check_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "check",
          .summary = "acceptance test of the machines of all ranks: what is slow or wrong is named",
          .sections = {"check"},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments
                    .option("--level", flags->level,
                            "1: seconds, 2: a minute with measurements, 3: 15 minutes under load")
                    .show_default()
                    .range(1, 3);
                arguments.option("--save", flags->save,
                                 "write what was measured as a cluster for renkei plan");
                arguments.option("--baseline", flags->baseline,
                                 "compare with a file that --save wrote");
                arguments.option("--page", flags->page,
                                 "write a page with the sorted rates and the map of the links");
              },
          .run =
              [flags](Invocation& invocation) {
                check_flags(*flags);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  run_as_rank(invocation, context, *flags);
                });
              }};
}

}  // namespace renkei::cli
