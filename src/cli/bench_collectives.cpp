#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "base/version.h"
#include "bench/collectives.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

struct Options {
  std::string sizes = "4KiB:64MiB:*4";
  int rounds = 9;
  bool peers = false;
  std::string csv;
};

const std::pair<std::string, double>* best_peer(const bench::CollectivesRow& row) {
  if (row.peers_us.empty()) return nullptr;
  return &*std::ranges::min_element(row.peers_us, {}, &std::pair<std::string, double>::second);
}

double ratio(const bench::CollectivesRow& row) {
  const auto* peer = best_peer(row);
  return peer ? peer->second / row.in_place_us : 0;
}

std::string table_of(const std::vector<bench::CollectivesRow>& rows, int ranks) {
  using report::Align;
  const bool peers = !rows.empty() && !rows[0].peers_us.empty();
  std::vector<report::Column> columns{{"size", Align::right},
                                      {"count", Align::right},
                                      {"type"},
                                      {"redop"},
                                      {"buffers"},
                                      {"algorithm"},
                                      {"out us", Align::right},
                                      {"in us", Align::right},
                                      {"p99 us", Align::right},
                                      {"algbw", Align::right},
                                      {"busbw", Align::right},
                                      {"#wrong", Align::right},
                                      {"bound us", Align::right}};
  if (peers)
    columns.insert(columns.end(),
                   {{"best peer"}, {"peer us", Align::right}, {"ratio", Align::right}});
  report::Table table(columns);
  for (const auto& row : rows) {
    std::vector<std::string> cells{format_size(row.size_bytes),
                                   std::to_string(row.count),
                                   "float",
                                   "sum",
                                   row.buffers,
                                   row.algorithm,
                                   fmt::format("{:.1f}", row.out_of_place_us),
                                   fmt::format("{:.1f}", row.in_place_us),
                                   fmt::format("{:.1f}", row.in_place_p99_us),
                                   fmt::format("{:.2f}", row.algorithm_gbs),
                                   fmt::format("{:.2f}", row.bus_gbs),
                                   std::to_string(row.wrong),
                                   fmt::format("{:.1f}", row.bound_us)};
    if (const auto* peer = best_peer(row))
      cells.insert(cells.end(), {peer->first, fmt::format("{:.1f}", peer->second),
                                 fmt::format("{:.2f}", ratio(row))});
    table.add_row(std::move(cells));
  }
  return fmt::format(
      "allreduce on {} ranks. out: from another buffer, in: in place; median of interleaved "
      "rounds,\n"
      "slowest rank; algbw and busbw (in place) in GB/s; bound: the same reads and writes on "
      "memory\n"
      "of one's own, without any exchange{}\n\n{}",
      ranks, peers ? "; ratio: best peer's time / ours" : "", table.text());
}

nlohmann::json json_of(const bench::CollectivesRow& row) {
  nlohmann::json peers = nlohmann::json::object();
  for (const auto& [name, us] : row.peers_us) peers[name] = us;
  nlohmann::json json{{"collective", "allreduce"},
                      {"buffers", row.buffers},
                      {"size_bytes", row.size_bytes},
                      {"count", row.count},
                      {"dtype", "f32"},
                      {"op", "sum"},
                      {"algorithm", row.algorithm},
                      {"time_us", row.in_place_us},
                      {"p99_us", row.in_place_p99_us},
                      {"out_of_place_us", row.out_of_place_us},
                      {"algbw_gbs", row.algorithm_gbs},
                      {"busbw_gbs", row.bus_gbs},
                      {"wrong", row.wrong},
                      {"bound_us", row.bound_us},
                      {"peers", peers},
                      {"best_peer", nullptr},
                      {"ratio", nullptr}};
  if (const auto* peer = best_peer(row)) {
    json["best_peer"] = peer->first;
    json["ratio"] = ratio(row);
  }
  return json;
}

std::string csv_of(const std::vector<bench::CollectivesRow>& rows) {
  std::string text =
      "size_bytes,count,dtype,op,buffers,algorithm,out_of_place_us,in_place_us,p99_us,algbw_gbs,"
      "busbw_gbs,wrong,bound_us,best_peer,best_peer_us,ratio\n";
  for (const auto& row : rows) {
    const auto* peer = best_peer(row);
    text += fmt::format(
        "{},{},f32,sum,{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{:.3f},{},{},{}\n",
        row.size_bytes, row.count, row.buffers, row.algorithm, row.out_of_place_us, row.in_place_us,
        row.in_place_p99_us, row.algorithm_gbs, row.bus_gbs, row.wrong, row.bound_us,
        peer ? peer->first : "", peer ? fmt::format("{:.3f}", peer->second) : "",
        peer ? fmt::format("{:.3f}", ratio(row)) : "");
  }
  return text;
}

void run_as_rank(Invocation& invocation, RankContext& context, const Options& options) {
  comm::Transport& transport = context.world.transport();
  const bool first = transport.rank() == 0;
  bench::CollectivesOptions wanted{
      .sizes_bytes = parse_sweep(options.sizes), .rounds = options.rounds, .peers = options.peers};
  for (int64_t& size : wanted.sizes_bytes) size = std::max<int64_t>(4, size / 4 * 4);

  comm::Communicator communicator(
      transport, comm::communicator_options(invocation.settings, transport.size()));
  if (first && !invocation.quiet) fmt::print(stderr, "{}\n", communicator.topology());
  const auto rows =
      bench::measure_collectives(communicator, wanted, [&](const bench::CollectivesRow& row) {
        if (first && !invocation.quiet)
          fmt::print(stderr, "{} {}: {:.1f} us\n", format_size(row.size_bytes), row.buffers,
                     row.in_place_us);
      });
  if (!first) return;
  if (!options.csv.empty()) write_file_atomically(options.csv, csv_of(rows));
  if (!invocation.json) {
    fmt::print("{}", table_of(rows, transport.size()));
  } else {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& row : rows) list.push_back(json_of(row));
    fmt::print("{}\n", nlohmann::json{{"command", "bench collectives"},
                                      {"version", kVersion},
                                      {"ranks", transport.size()},
                                      {"hosts", context.world.hosts()},
                                      {"threads_per_rank", 1},
                                      {"rows", list}}
                           .dump(2));
  }
  for (const auto& row : rows)
    if (row.wrong > 0)
      throw Error(ErrorCode::check, fmt::format("{} elements of an allreduce of {} are wrong",
                                                row.wrong, format_size(row.size_bytes)));
}

}  // namespace

Command make_bench_collectives_command() {
  const auto options = std::make_shared<Options>();
  return {.name = "bench collectives",
          .summary = "time allreduce, beside the MPI library's and Gloo's",
          .sections = {"comm"},
          .add_flags =
              [options](CLI::App& app) {
                app.add_option("--sizes", options->sizes, "sizes of the buffer: a sweep")
                    ->capture_default_str();
                app.add_option("--repeat", options->rounds, "interleaved rounds")
                    ->capture_default_str()
                    ->check(CLI::Range(1, 10'000));
                app.add_flag("--peers", options->peers,
                             "also time MPI_Allreduce and Gloo in the same processes");
                app.add_option("--csv", options->csv, "also write the table to this file");
              },
          .run =
              [options](Invocation& invocation) {
                parse_sweep(options->sizes);
                if (options->peers) comm::prepare_mpi_peers();
                return run_on_ranks(invocation, [&](RankContext& context) {
                  run_as_rank(invocation, context, *options);
                });
              }};
}

}  // namespace renkei::cli
