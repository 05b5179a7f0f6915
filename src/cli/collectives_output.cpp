#include "cli/collectives_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

using bench::CollectivesOptions;
using bench::CollectivesRow;
using bench::ExplainedCandidate;
using bench::ExplainedRow;
using report::Align;

const std::pair<std::string, double>* best_peer(const CollectivesRow& row) {
  if (row.peers_us.empty()) return nullptr;
  return &*std::ranges::min_element(row.peers_us, {}, &std::pair<std::string, double>::second);
}

double ratio(const CollectivesRow& row) {
  const auto* peer = best_peer(row);
  return peer ? peer->second / row.time_us : 0;
}

// What all_to_all takes is from one buffer to another already.
double out_of_place_us(const CollectivesRow& row) {
  return row.from_other_us.value_or(row.time_us);
}

std::string_view operation_of(const CollectivesOptions& options) {
  const bool reduces = options.collective == comm::Collective::allreduce ||
                       options.collective == comm::Collective::reduce_scatter;
  return reduces ? "sum" : "none";
}

std::string microseconds(std::optional<double> us) {
  return us ? fmt::format("{:.1f}", *us) : "-";
}

nlohmann::json number_or_null(const auto& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json json_of(const CollectivesRow& row, const CollectivesOptions& options) {
  nlohmann::json peers = nlohmann::json::object();
  for (const auto& [name, us] : row.peers_us) peers[name] = us;
  nlohmann::json json{{"collective", name_of(options.collective)},
                      {"buffers", row.buffers},
                      {"size_bytes", row.size_bytes},
                      {"count", row.count},
                      {"dtype", name_of(options.dtype)},
                      {"op", operation_of(options)},
                      {"algorithm", row.algorithm},
                      {"time_us", row.time_us},
                      {"p99_us", row.p99_us},
                      {"out_of_place_us", out_of_place_us(row)},
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

nlohmann::json json_of(const ExplainedRow& row, const CollectivesOptions& options) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const ExplainedCandidate& candidate : row.candidates)
    candidates.push_back({{"algorithm", candidate.algorithm},
                          {"segment_bytes", number_or_null(candidate.segment_bytes)},
                          {"predicted_us", number_or_null(candidate.predicted_us)},
                          {"time_us", number_or_null(candidate.measured_us)},
                          {"chosen", candidate.chosen},
                          {"reason", candidate.reason}});
  return {{"collective", name_of(options.collective)},
          {"size_bytes", row.size_bytes},
          {"count", row.count},
          {"dtype", name_of(options.dtype)},
          {"op", operation_of(options)},
          {"algorithm", row.chosen().algorithm},
          {"reason", row.chosen().reason},
          {"predicted_us", number_or_null(row.chosen().predicted_us)},
          {"time_us", number_or_null(row.chosen().measured_us)},
          {"fastest", row.fastest().algorithm},
          {"candidates", candidates}};
}

std::string describe(const comm::LinkCost& link) {
  return fmt::format("{:.1f} us + {:.2f} GB/s", link.latency_seconds * 1e6,
                     link.bytes_per_second / 1e9);
}

}  // namespace

std::string table_of(const std::vector<CollectivesRow>& rows, const CollectivesOptions& options,
                     int ranks) {
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
                                   std::string(name_of(options.dtype)),
                                   std::string(operation_of(options)),
                                   row.buffers,
                                   row.algorithm,
                                   microseconds(out_of_place_us(row)),
                                   row.in_place ? microseconds(row.time_us) : "-",
                                   microseconds(row.p99_us),
                                   fmt::format("{:.2f}", row.algorithm_gbs),
                                   fmt::format("{:.2f}", row.bus_gbs),
                                   std::to_string(row.wrong),
                                   microseconds(row.bound_us)};
    if (const auto* peer = best_peer(row))
      cells.insert(cells.end(),
                   {peer->first, microseconds(peer->second), fmt::format("{:.2f}", ratio(row))});
    table.add_row(std::move(cells));
  }
  return fmt::format(
      "{} on {} ranks. out: from another buffer, in: in place; median of interleaved rounds,\n"
      "slowest rank; p99, algbw and busbw (GB/s) of in, or of out where there is no in; bound: "
      "the\n"
      "same reads and writes on memory of one's own, without any exchange{}\n"
      "buffers: memory that the ranks share, where the result exists once for all to read, as in\n"
      "training, or in each rank's shared buffer; or private memory\n\n{}",
      name_of(options.collective), ranks, peers ? "; ratio: best peer's time / ours" : "",
      table.text());
}

nlohmann::json json_of(const std::vector<CollectivesRow>& rows, const CollectivesOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& row : rows) list.push_back(json_of(row, options));
  return list;
}

std::string csv_of(const std::vector<CollectivesRow>& rows, const CollectivesOptions& options) {
  std::string text =
      "collective,size_bytes,count,dtype,op,buffers,algorithm,out_of_place_us,time_us,p99_us,"
      "algbw_gbs,busbw_gbs,wrong,bound_us,best_peer,best_peer_us,ratio\n";
  for (const auto& row : rows) {
    const auto* peer = best_peer(row);
    text += fmt::format(
        "{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{},{:.3f},{},{},{}\n",
        name_of(options.collective), row.size_bytes, row.count, name_of(options.dtype),
        operation_of(options), row.buffers, row.algorithm, out_of_place_us(row), row.time_us,
        row.p99_us, row.algorithm_gbs, row.bus_gbs, row.wrong, row.bound_us,
        peer ? peer->first : "", peer ? fmt::format("{:.3f}", peer->second) : "",
        peer ? fmt::format("{:.3f}", ratio(row)) : "");
  }
  return text;
}

std::string table_of(const bench::Explanation& explanation, const CollectivesOptions& options,
                     int ranks) {
  report::Table table({{"size", Align::right},
                       {""},
                       {"algorithm"},
                       {"segment", Align::right},
                       {"predicted us", Align::right},
                       {"measured us", Align::right},
                       {"why"}});
  for (const ExplainedRow& row : explanation.rows)
    for (const ExplainedCandidate& candidate : row.candidates) {
      std::string why = candidate.reason;
      // Only a clear difference says anything against the choice.
      constexpr double kClear = 1.1;
      if (&candidate == &row.fastest() && !candidate.chosen && row.chosen().measured_us &&
          *row.chosen().measured_us > kClear * *candidate.measured_us)
        why += fmt::format("; measured {:.2g} × as fast",
                           *row.chosen().measured_us / *candidate.measured_us);
      const auto segment = candidate.segment_bytes;
      table.add_row(
          {candidate.chosen ? format_size(row.size_bytes) : "", candidate.chosen ? "*" : "",
           candidate.algorithm, segment ? format_size(static_cast<int64_t>(*segment)) : "-",
           microseconds(candidate.predicted_us), microseconds(candidate.measured_us), why});
    }
  const comm::CostModel& model = explanation.model;
  return fmt::format(
      "allreduce of {} on {} ranks: the ways to do it, * the chosen one. Messages inside a host: "
      "{};\n"
      "between hosts: {}; reduction: {:.1f} GB/s\n\n{}",
      name_of(options.dtype), ranks, describe(model.inside),
      model.hosts > 1 ? describe(model.between) : "none", model.reduce_bytes_per_second / 1e9,
      table.text());
}

nlohmann::json json_of(const bench::Explanation& explanation, const CollectivesOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const ExplainedRow& row : explanation.rows) list.push_back(json_of(row, options));
  return list;
}

}  // namespace renkei::cli
