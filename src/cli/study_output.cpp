#include "cli/study_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

using report::Align;
using study::Row;
using study::Study;

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

std::string error_text(const Row& row) {
  const auto error = row.error();
  if (!error) return "";
  return row.unit == "%" ? fmt::format("{:+.1f} points", *error)
                         : fmt::format("{:+.1f} %", 100 * *error);
}

nlohmann::json json_of(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::string study_for_people(const Study& study) {
  std::string text = study.title + "\n\n";
  report::Table parameters({{"assumed"}, {""}, {"from"}});
  for (const auto& [name, value, source] : study.parameters)
    parameters.add_row({name, value, source});
  if (!study.parameters.empty()) text += parameters.text() + "\n";
  report::Table rows({{"what"},
                      {"unit"},
                      {"published", Align::right},
                      {"simulated", Align::right},
                      {"measured here", Align::right},
                      {"error", Align::right}});
  for (const Row& row : study.rows)
    rows.add_row({row.what, row.unit, number(row.published), number(row.simulated),
                  number(row.measured), error_text(row)});
  text += rows.text();
  for (const std::string& finding : study.findings) text += "\n" + finding + "\n";
  return text;
}

nlohmann::json study_for_programs(const Study& study) {
  nlohmann::json rows = nlohmann::json::array(), parameters = nlohmann::json::array();
  for (const Row& row : study.rows)
    rows.push_back({{"what", row.what},
                    {"unit", row.unit},
                    {"published", json_of(row.published)},
                    {"simulated", json_of(row.simulated)},
                    {"measured", json_of(row.measured)},
                    {"error", json_of(row.error())}});
  for (const auto& [name, value, source] : study.parameters)
    parameters.push_back({{"name", name}, {"value", value}, {"source", source}});
  return {{"command", "study " + study.name},
          {"version", kVersion},
          {"study", study.name},
          {"ranks", 1},
          {"hosts", 1},
          {"threads_per_rank", 1},
          {"parameters", std::move(parameters)},
          {"rows", std::move(rows)},
          {"findings", study.findings}};
}

std::string study_page(const Study& study) {
  std::string page = fmt::format(
      "<!doctype html><meta charset='utf-8'><title>{0}</title>\n<style>body{{font-family:"
      "sans-serif;max-width:60em;margin:2em auto}}td,th{{padding:.2em .8em;text-align:left}}"
      "tr:nth-child(even){{background:#f4f4f4}}</style>\n<h1>{0}</h1>\n<p>Published values beside "
      "predictions of renkei {1}.</p>\n",
      study.title, kVersion);
  page += "<table><tr><th>what<th>unit<th>published<th>simulated<th>measured here<th>error\n";
  for (const Row& row : study.rows)
    page += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}\n", row.what, row.unit,
                        number(row.published), number(row.simulated), number(row.measured),
                        error_text(row));
  page += "</table>\n";
  for (const std::string& finding : study.findings) page += "<p>" + finding + "</p>\n";
  for (const study::Plot& plot : study.plots) page += svg(plot);
  page += "<h2>What was assumed</h2><table>\n";
  for (const auto& [name, value, source] : study.parameters)
    page += fmt::format("<tr><td>{}<td>{}<td>{}\n", name, value, source);
  return page + "</table>\n";
}

}  // namespace renkei::cli
