#include <fmt/format.h>

#include "base/units.h"
#include "report/page_data.h"

namespace renkei::report {
namespace {

using timeline::Category;

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

std::string csv_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

std::string markdown_of(const RunReport& run) {
  const timeline::StepTimes& all = run.attribution.all;
  std::string text = fmt::format("# {}\n\n", run.name());
  if (!run.ended.empty()) text += fmt::format("**Not finished:** {}\n\n", run.ended);
  text += fmt::format("**{}**", run.verdict.sentence);
  if (!run.verdict.advice.empty()) text += fmt::format(" Advice: {}.", run.verdict.advice);
  if (run.verdict.gain_seconds > 0)
    text +=
        fmt::format(" Expected gain: {} of {} a step.", format_duration(run.verdict.gain_seconds),
                    format_duration(run.what_ifs.measured_seconds));
  text +=
      fmt::format("\n\n{}, {} ranks, {:.0f} samples/s, {} in all\n", cell(run.model()),
                  run.ranks.size(), run.samples_per_second(), format_duration(run.wall_seconds));
  if (all.seconds > 0) {
    text += "\n| where a step's time goes | mean of all ranks | share |";
    for (const auto& rank : run.ranks) text += fmt::format(" rank {} |", rank.info.rank);
    text += "\n|---|---:|---:|";
    for (size_t r = 0; r < run.ranks.size(); ++r) text += "---:|";
    for (int c = 0; c < timeline::kCategories; ++c) {
      const auto category = static_cast<Category>(c);
      text += fmt::format("\n| {} | {} | {:.1f} % |", name_of(category),
                          format_duration(all[category]), 100 * all[category] / all.seconds);
      for (const auto& rank : run.attribution.ranks)
        text += fmt::format(" {} |", format_duration(rank[category]));
    }
    text += fmt::format("\n| step | {} | 100 % |", format_duration(all.seconds));
    for (const auto& rank : run.attribution.ranks)
      text += fmt::format(" {} |", format_duration(rank.seconds));
    text += "\n";
  }
  if (!run.what_ifs.list.empty()) {
    text += fmt::format(
        "\n| what if | a step would take | gain |\n|---|---:|---:|\n"
        "| nothing changed (replay) | {} | {:+.1f} % error |\n",
        format_duration(run.what_ifs.replay_seconds), 100 * run.what_ifs.replay_error());
    for (const WhatIf& one : run.what_ifs.list)
      text += fmt::format("| {} | {} | {:.1f} % |\n", cell(one.cause),
                          format_duration(one.step_seconds),
                          100 * (1 - one.step_seconds / run.what_ifs.measured_seconds));
  }
  if (!run.operations.empty()) {
    text += "\n| operation | in a step of a rank | calls |\n|---|---:|---:|\n";
    for (const OperationTime& one : run.operations)
      text += fmt::format("| {} | {} | {:.4g} |\n", cell(one.name), format_duration(one.seconds),
                          one.calls);
  }
  if (!run.parts.empty()) {
    text += "\n| the whole run | seconds |\n|---|---:|\n";
    for (const RunPart& part : run.parts)
      text += fmt::format("| {} | {:.3f} |\n", cell(part.name), part.seconds);
    text += fmt::format("| wall time | {:.3f} |\n", run.wall_seconds);
  }
  return text;
}

}  // namespace

std::string markdown_of(std::span<const RunReport> runs) {
  std::string text;
  for (const RunReport& run : runs) text += (text.empty() ? "" : "\n") + markdown_of(run);
  return text;
}

std::string csv_of(std::span<const RunReport> runs) {
  std::string text = "run,model,rank,host,step_seconds";
  for (int c = 0; c < timeline::kCategories; ++c)
    text += fmt::format(",{}", name_of(static_cast<Category>(c)));
  text += ",hidden_communication\n";
  for (const RunReport& run : runs)
    for (size_t r = 0; r < run.attribution.ranks.size(); ++r) {
      const timeline::StepTimes& times = run.attribution.ranks[r];
      text += fmt::format("{},{},{},{},{:.9g}", csv_text(run.name()), csv_text(run.model()),
                          run.ranks[r].info.rank, csv_text(run.ranks[r].info.host), times.seconds);
      for (const double seconds : times.by_category) text += fmt::format(",{:.9g}", seconds);
      text += fmt::format(",{:.9g}\n", run.attribution.hidden_communication[r]);
    }
  return text;
}

}  // namespace renkei::report
