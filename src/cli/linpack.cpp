#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/ranks.h"
#include "cluster/launcher.h"
#include "dense/hpl.h"
#include "dense/linpack.h"
#include "dense/product.h"
#include "report/progress.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

constexpr int kProductOrder = 1600, kProductRuns = 3;

struct Flags {
  std::string engine = "scalapack";
  std::filesystem::path xhpl;
  std::string launch;
};

struct Where {
  int ranks, hosts, threads;
};

double efficiency(const dense::LinpackResult& result) {
  return result.gflops / result.product_gflops;
}

nlohmann::json json_of(const Flags& flags, const Where& where, const dense::LinpackOptions& options,
                       const dense::LinpackResult& result) {
  nlohmann::json json{{"command", "linpack"},
                      {"version", kVersion},
                      {"ranks", where.ranks},
                      {"hosts", where.hosts},
                      {"threads_per_rank", where.threads},
                      {"n", options.n},
                      {"nb", options.block},
                      {"p", options.grid.p},
                      {"q", options.grid.q},
                      {"mapping", options.column_major ? "column" : "row"},
                      {"engine", flags.engine},
                      {"seconds", result.seconds},
                      {"gflops", result.gflops},
                      {"residual", result.residual},
                      {"passed", result.passed},
                      {"dgemm_gflops", nullptr},
                      {"efficiency", nullptr},
                      {"joules", nullptr},
                      {"gflops_per_watt", nullptr}};
  if (result.product_gflops > 0) {
    json["dgemm_gflops"] = result.product_gflops;
    json["efficiency"] = efficiency(result);
  }
  if (result.joules) {
    json["joules"] = *result.joules;
    json["gflops_per_watt"] = result.gflops * result.seconds / *result.joules;
  }
  return json;
}

std::string table_of(const Flags& flags, const Where& where, const dense::LinpackOptions& options,
                     const dense::LinpackResult& result) {
  report::Table table({{"LINPACK"}, {""}});
  table.add_row({"engine", flags.engine});
  table.add_row({"ranks", fmt::format("{} on {} host{}, {} thread{} each", where.ranks, where.hosts,
                                      where.hosts == 1 ? "" : "s", where.threads,
                                      where.threads == 1 ? "" : "s")});
  table.add_row({"matrix", fmt::format("n = {}, {} in all", format_count(options.n),
                                       format_size(options.n * options.n * 8))});
  table.add_row({"blocks", fmt::format("nb = {}, grid {} x {} by {}", options.block, options.grid.p,
                                       options.grid.q, options.column_major ? "columns" : "rows")});
  table.add_row({"time", fmt::format("{:.3f} s", result.seconds)});
  table.add_row({"speed", fmt::format("{:.2f} GFLOP/s", result.gflops)});
  if (result.product_gflops > 0)
    table.add_row({"efficiency", fmt::format("{:.1f} % of {:.2f} GFLOP/s, the matrix product of "
                                             "the same ranks in this run",
                                             100 * efficiency(result), result.product_gflops)});
  table.add_row({"energy", result.joules
                               ? fmt::format("{:.0f} J, {:.2f} GFLOP/s per watt", *result.joules,
                                             result.gflops * result.seconds / *result.joules)
                               : "not known: no RAPL counter can be read"});
  table.add_row(
      {"residual",
       fmt::format("{:.4g}, {} {}: {}", result.residual, result.passed ? "below" : "not below",
                   dense::kResidualLimit, result.passed ? "PASSED" : "FAILED")});
  return table.text();
}

// The result is the answer; a bad one is an error on top.
void tell(const Invocation& invocation, const Flags& flags, const Where& where,
          const dense::LinpackOptions& options, const dense::LinpackResult& result) {
  if (invocation.json)
    fmt::print("{}\n", json_of(flags, where, options, result).dump(2));
  else
    fmt::print("{}", table_of(flags, where, options, result));
  std::fflush(stdout);
}

void refuse_bad(const dense::LinpackResult& result) {
  if (result.passed) return;
  throw FailedResult(
      fmt::format("the solution FAILED: its residual of {:.4g} is not below {}", result.residual,
                  dense::kResidualLimit),
      "the time means nothing; look for a broken processor or memory with renkei check");
}

void run_as_rank(Invocation& invocation, RankContext& context, const Flags& flags) {
  comm::Transport& transport = context.world.transport();
  auto options = dense::linpack_options(invocation.settings, transport.size(),
                                        dense::memory_for_matrix(invocation.settings, transport));
  options.threads = context.threads;
  options.seed = static_cast<uint64_t>(invocation.settings.integer("run.seed"));
  report::Progress progress(report::progress_on_stderr());
  const bool shown = transport.rank() == 0 && !invocation.quiet;
  if (shown)
    options.progress = [&](int64_t done, int64_t total) {
      progress.update({.label = "LU", .done = done, .total = total, .unit = "columns"});
    };
  const dense::LinpackResult result = dense::solve_linpack(transport, options);
  if (shown) progress.finish();
  if (transport.rank() == 0)
    tell(invocation, flags, {transport.size(), context.world.hosts(), context.threads}, options,
         result);
  refuse_bad(result);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

int run_xhpl(const Invocation& invocation, const Flags& flags) {
  if (flags.xhpl.empty())
    throw Error(ErrorCode::usage, "--engine hpl needs your HPL", "name it with --xhpl PATH");
  const std::filesystem::path program = std::filesystem::absolute(flags.xhpl);
  if (::access(program.c_str(), X_OK) != 0)
    throw Error(ErrorCode::usage, fmt::format("{} is no program", program.string()),
                "--xhpl must name an executable file");
  if (cluster::detect_launcher([](const char* name) { return std::getenv(name); }))
    throw Error(ErrorCode::usage, "--engine hpl starts the ranks of HPL by itself",
                "start renkei without mpirun: -n RANKS, or --launch 'mpirun -n 16 --hostfile …'");
  const int ranks = std::max(1, invocation.ranks);
  const int cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const int threads = static_cast<int>(
      invocation.settings.integer_unless_auto("run.threads").value_or(std::max(1, cores / ranks)));
  if (invocation.settings.is_auto("linpack.n"))
    throw Error(ErrorCode::usage, "--engine hpl needs the order of the matrix",
                "give it with --order N");
  auto options = dense::linpack_options(invocation.settings, ranks, 0);
  options.threads = threads;
  std::vector<std::string> command = words_of(flags.launch);
  if (command.empty())
    command = cluster::local_launch_command(ranks, {program});
  else
    command.push_back(program);
  dense::LinpackResult result = dense::run_hpl(command, options);
  if (flags.launch.empty() && dense::have_products())
    result.product_gflops =
        dense::product_flops_per_second(dense::Precision::f64, kProductOrder,
                                        std::min(cores, ranks * threads), kProductRuns) /
        1e9;
  tell(invocation, flags, {ranks, 1, threads}, options, result);
  refuse_bad(result);
  return 0;
}

}  // namespace

Command make_linpack_command() {
  const auto flags = std::make_shared<Flags>();
  return {.name = "linpack",
          .summary = "solve a dense system of equations fast, and prove the solution",
          .sections = {"linpack"},
          .add_flags =
              [flags](Arguments& arguments) {
                arguments.option("--engine", flags->engine, "who computes")
                    .show_default()
                    .one_of({"scalapack", "hpl"});
                arguments.option("--xhpl", flags->xhpl, "the program of your HPL");
                arguments.option("--launch", flags->launch,
                                 "what starts it on your hosts; without, -n local ranks");
              },
          .run =
              [flags](Invocation& invocation) {
                if (flags->engine == "hpl") return run_xhpl(invocation, *flags);
                return run_on_ranks(invocation, [&](RankContext& context) {
                  run_as_rank(invocation, context, *flags);
                });
              }};
}

}  // namespace renkei::cli
