#include "cli/simulate_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

using report::Align;

std::string milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", 1e3 * seconds);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string rows_table(const SimulationReport& report) {
  const bool whole = report.scenario.training_samples > 0;
  const bool reads =
      report.scenario.data.sample_bytes > 0 || report.scenario.step.load_seconds_per_sample > 0;
  std::vector<report::Column> columns{{"devices", Align::right},   {"batch", Align::right},
                                      {"step", Align::right},      {"compute", Align::right},
                                      {"update", Align::right},    {"bubble", Align::right},
                                      {"imbalance", Align::right}, {"communication", Align::right},
                                      {"samples/s", Align::right}, {"efficiency", Align::right}};
  if (reads) columns.push_back({"waits for data", Align::right});
  if (whole) {
    columns.push_back({"training", Align::right});
    columns.push_back({"device hours", Align::right});
  }
  report::Table table(columns);
  for (const sim::ScalingRow& row : report.rows) {
    const sim::StepParts& parts = row.step.parts;
    std::vector<std::string> cells{fmt::format("{}", row.devices),
                                   format_count(row.batch),
                                   milliseconds(row.step_seconds),
                                   milliseconds(parts.compute),
                                   milliseconds(parts.update),
                                   milliseconds(parts.bubble),
                                   milliseconds(parts.imbalance),
                                   milliseconds(parts.communication),
                                   fmt::format("{:.5g}", row.samples_per_second),
                                   percent(row.efficiency)};
    if (reads) cells.push_back(milliseconds(parts.data + row.data_seconds));
    if (whole) {
      cells.push_back(row.training.ends ? format_duration(row.training.seconds) : "never ends");
      cells.push_back(fmt::format("{:.1f}", row.device_hours()));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string gains_table(const SimulationReport& report) {
  report::Table table(
      {{"10 % better"}, {"setting"}, {"step", Align::right}, {"gain", Align::right}});
  for (const sim::Gain& gain : report.gains)
    table.add_row({gain.meaning, "cluster." + gain.knob, milliseconds(gain.step_seconds),
                   percent(gain.gain)});
  return table.text();
}

}  // namespace

std::string simulation_for_people(const SimulationReport& report) {
  const sim::Scenario& scenario = report.scenario;
  const sim::ScalingRow& last = report.rows.back();
  report::Table head({{"predicted"}, {""}});
  head.add_row({"model", scenario.graph.name});
  head.add_row({"costs", scenario.device_samples_per_second
                             ? fmt::format("one device was measured at {:.5g} samples/s",
                                           *scenario.device_samples_per_second)
                         : scenario.graph.estimated ? "estimated from FLOPs and bytes"
                                                    : "measured"});
  head.add_row({"machine", scenario.machine.name});
  head.add_row({"plan", fmt::format("on {} devices: {}", last.devices, last.plan)});
  head.add_row({"allreduce", fmt::format("{}, {}", last.step.algorithm,
                                         name_of(scenario.step.reduction.detail))});
  head.add_row({"simulated in", format_duration(report.simulation_seconds)});
  std::string text = head.text() + "\n" + rows_table(report);
  if (!report.gains.empty())
    text += fmt::format("\nwhat would help on {} devices\n{}", last.devices, gains_table(report));
  return text;
}

nlohmann::json simulation_for_programs(const SimulationReport& report) {
  const sim::Scenario& scenario = report.scenario;
  nlohmann::json rows = nlohmann::json::array();
  for (const sim::ScalingRow& row : report.rows) {
    const sim::StepParts& parts = row.step.parts;
    nlohmann::json json{{"devices", row.devices},
                        {"batch", row.batch},
                        {"plan", row.plan},
                        {"algorithm", row.step.algorithm},
                        {"step_seconds", row.step_seconds},
                        {"communication_seconds", parts.communication},
                        {"samples_per_second", row.samples_per_second},
                        {"efficiency", row.efficiency},
                        {"time",
                         {{"compute", parts.compute},
                          {"communication", parts.communication},
                          {"imbalance", parts.imbalance},
                          {"bubble", parts.bubble},
                          {"update", parts.update},
                          {"data", parts.data + row.data_seconds}}}};
    if (scenario.data.sample_bytes > 0)
      json["reading"] = {{"seconds", row.reading.seconds},
                         {"cached_share", row.reading.cached_share},
                         {"needed_bytes_per_second", row.reading.needed_bytes_per_second}};
    if (scenario.training_samples > 0)
      json["training"] = {
          {"seconds", row.training.seconds},   {"device_hours", row.device_hours()},
          {"failures", row.training.failures}, {"saving_seconds", row.training.saving},
          {"lost_seconds", row.training.lost}, {"restart_seconds", row.training.restarting},
          {"ends", row.training.ends}};
    rows.push_back(std::move(json));
  }
  nlohmann::json gains = nlohmann::json::array();
  for (const sim::Gain& gain : report.gains)
    gains.push_back({{"setting", "cluster." + gain.knob},
                     {"meaning", gain.meaning},
                     {"step_seconds", gain.step_seconds},
                     {"gain", gain.gain}});
  return {{"command", "simulate"},
          {"version", kVersion},
          {"predicted", true},
          {"model", scenario.graph.name},
          {"cluster", scenario.machine.name},
          {"detail", name_of(scenario.step.reduction.detail)},
          {"ranks", report.rows.back().devices},
          {"hosts", 1},
          {"threads_per_rank", 1},
          {"rows", std::move(rows)},
          {"sensitivity", std::move(gains)},
          {"simulation_seconds", report.simulation_seconds}};
}

}  // namespace renkei::cli
