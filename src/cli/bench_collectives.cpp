#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "bench/collectives.h"
#include "bench/explain.h"
#include "cli/collectives_output.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/ranks.h"

namespace renkei::cli {
namespace {

using comm::Collective;
using comm::DType;

constexpr Collective kCollectives[] = {Collective::allreduce, Collective::reduce_scatter,
                                       Collective::all_gather, Collective::broadcast,
                                       Collective::all_to_all};
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64};

struct Options {
  std::string collective = "allreduce";
  std::string dtype = "f32";
  std::string sizes = "4KiB:64MiB:*4";
  int rounds = 9;
  bool peers = false;
  bool explain = false;
  std::string csv;
};

template <typename Value, size_t N>
std::vector<std::string> names_of(const Value (&values)[N]) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  return names;
}

// The flag was checked against the names.
template <typename Value, size_t N>
Value named(const Value (&values)[N], const std::string& name) {
  return *std::ranges::find_if(values, [&](Value value) { return name_of(value) == name; });
}

bench::CollectivesOptions bench_options(const Options& options, const Settings& settings) {
  return {.collective = named(kCollectives, options.collective),
          .dtype = named(kTypes, options.dtype),
          .sizes_bytes = parse_sweep(options.sizes),
          .rounds = options.rounds,
          .peers = options.peers,
          .timeout_seconds = settings.seconds("comm.timeout")};
}

void check(const Options& options, int ranks) {
  parse_sweep(options.sizes);
  if (options.peers && (options.collective != "allreduce" || options.dtype != "f32"))
    throw Error(ErrorCode::usage,
                fmt::format("--peers times an allreduce of f32, not {} of {}", options.collective,
                            options.dtype),
                "leave --peers out, or --collective and --dtype");
  if (options.explain && options.collective != "allreduce")
    throw Error(ErrorCode::usage,
                fmt::format("--explain knows nothing to choose from for {}", options.collective),
                "only an allreduce has several algorithms; leave --collective out");
  if (options.explain && ranks == 1)
    throw Error(ErrorCode::usage, "--explain needs ranks that exchange something",
                "start two or more with -n, mpirun or srun");
}

void print_json(const RankContext& context, const nlohmann::json& rows) {
  fmt::print("{}\n", nlohmann::json{{"command", "bench collectives"},
                                    {"version", kVersion},
                                    {"ranks", context.world.transport().size()},
                                    {"hosts", context.world.hosts()},
                                    {"threads_per_rank", 1},
                                    {"rows", rows}}
                         .dump(2));
}

void explain(const Invocation& invocation, const RankContext& context,
             comm::Communicator& communicator, const bench::CollectivesOptions& wanted) {
  const int ranks = context.world.transport().size();
  const bool first = context.world.transport().rank() == 0;
  const auto explanation =
      bench::explain_choices(communicator, wanted, [&](const bench::ExplainedRow& row) {
        if (first && !invocation.quiet)
          fmt::print(stderr, "{}: {}\n", format_size(row.size_bytes), row.chosen().algorithm);
      });
  if (!first) return;
  if (invocation.json)
    print_json(context, json_of(explanation, wanted));
  else
    fmt::print("{}", table_of(explanation, wanted, ranks));
}

void measure(const Invocation& invocation, const RankContext& context,
             comm::Communicator& communicator, const bench::CollectivesOptions& wanted,
             const std::string& csv) {
  const int ranks = context.world.transport().size();
  const bool first = context.world.transport().rank() == 0;
  const auto rows =
      bench::measure_collectives(communicator, wanted, [&](const bench::CollectivesRow& row) {
        if (first && !invocation.quiet)
          fmt::print(stderr, "{} {}: {:.1f} us\n", format_size(row.size_bytes), row.buffers,
                     row.time_us);
      });
  if (first && !csv.empty()) write_file_atomically(csv, csv_of(rows, wanted));
  if (first && invocation.json) print_json(context, json_of(rows, wanted));
  if (first && !invocation.json) fmt::print("{}", table_of(rows, wanted, ranks));
  for (const auto& row : rows)
    if (row.wrong > 0)
      throw FailedResult(fmt::format("{} elements of {} of {} ({}, {} buffers) are wrong",
                                     row.wrong, name_of(wanted.collective),
                                     format_size(row.size_bytes), name_of(wanted.dtype),
                                     row.buffers));
}

void run_as_rank(Invocation& invocation, RankContext& context, const Options& options) {
  comm::Transport& transport = context.world.transport();
  check(options, transport.size());
  const auto wanted = bench_options(options, invocation.settings);
  comm::Communicator communicator(
      transport, comm::communicator_options(invocation.settings, transport.size()));
  if (transport.rank() == 0 && !invocation.quiet)
    fmt::print(stderr, "{}\n", communicator.topology());
  try {
    if (options.explain)
      explain(invocation, context, communicator, wanted);
    else
      measure(invocation, context, communicator, wanted, options.csv);
  } catch (const Error& error) {
    const Logger log({.rank = transport.rank(), .host = transport.host(transport.rank())});
    log.error("{}; the last operations:\n{}", error.message, communicator.recorder().text());
    throw;
  }
}

}  // namespace

Command make_bench_collectives_command() {
  const auto options = std::make_shared<Options>();
  return {.name = "bench collectives",
          .summary = "time collectives, beside the MPI library's, and explain choices",
          .sections = {"comm"},
          .add_flags =
              [options](Arguments& arguments) {
                arguments.option("--collective", options->collective, "what to time")
                    .show_default()
                    .one_of(names_of(kCollectives));
                arguments.option("--dtype", options->dtype, "type of the elements")
                    .show_default()
                    .one_of(names_of(kTypes));
                arguments.option("--sizes", options->sizes, "sizes of the buffer: a sweep")
                    .show_default();
                arguments.option("--repeat", options->rounds, "interleaved rounds")
                    .show_default()
                    .range(1, 10'000);
                const Argument peers = arguments.flag(
                    "--peers", options->peers, "also time MPI_Allreduce in the same processes");
                const Argument csv =
                    arguments.option("--csv", options->csv, "also write the table to this file");
                arguments
                    .flag("--explain", options->explain,
                          "show all ways to do an allreduce, as predicted and as measured, and "
                          "why one was chosen")
                    .excludes(peers)
                    .excludes(csv);
              },
          .run =
              [options](Invocation& invocation) {
                check(*options, expected_ranks(invocation));
                if (options->peers) comm::prepare_mpi_peers();
                return run_on_ranks(invocation, [&](RankContext& context) {
                  run_as_rank(invocation, context, *options);
                });
              }};
}

}  // namespace renkei::cli
