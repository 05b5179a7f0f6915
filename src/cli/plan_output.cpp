#include "cli/plan_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/units.h"
#include "base/version.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

using plan::Evaluated;
using plan::StageMemory;

std::string size_text(double bytes) {
  return format_size(static_cast<int64_t>(bytes));
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.3g} ms", 1e3 * seconds);
}

// "0-3", "0,4,8", "0-2,5".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (end - i > 1) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
    if (text.size() > 24 && i < ranks.size()) return text + ",…";
  }
  return text;
}

std::string stages_table(const PlanReport& report) {
  using report::Align;
  const plan::Objective& objective = report.objective;
  const Evaluated& best = *report.result.best;
  const graph::Graph& graph = objective.problem().graph;
  report::Table table({{"stage", Align::right},
                       {"ranks"},
                       {"ops", Align::right},
                       {"from"},
                       {"to"},
                       {"parameters", Align::right},
                       {"forward", Align::right},
                       {"backward", Align::right},
                       {"sends", Align::right},
                       {"memory of a rank", Align::right},
                       {"recompute"}});
  for (int s = 0; s < best.layout.stages(); ++s) {
    const auto stage = static_cast<size_t>(s);
    const size_t from = best.layout.cuts[stage], to = best.layout.cuts[stage + 1];
    const auto ops = objective.cuts().ops_between(from, to);
    const auto group = static_cast<size_t>(best.layout.shape().group_of(s));
    const graph::RangeBytes bytes = objective.cuts().bytes(from, to);
    const double samples =
        objective.samples(best.layout.micro_batches, best.layout.replicas[group]);
    const auto name = [&](graph::OpIndex index) {
      const graph::Op& op = graph.ops[static_cast<size_t>(index)];
      return op.name.empty() ? op.id : op.name;
    };
    const bool is_last = s + 1 == best.layout.stages();
    table.add_row({fmt::format("{}", s), ranks_text(report.plan.stage_list[stage].ranks),
                   format_count(static_cast<int64_t>(ops.size())), name(ops.front()),
                   name(ops.back()), size_text(bytes.trainable + bytes.buffers),
                   time_text(best.times[stage].forward), time_text(best.times[stage].backward()),
                   is_last ? "" : size_text(objective.cuts().crossing_bytes(to).at(samples)),
                   size_text(best.memory[group].total()), best.recompute[group] ? "yes" : ""});
  }
  return table.text();
}

std::string rejected_table(const plan::SearchResult& result) {
  report::Table table({{"considered and not taken"}, {"because it"}});
  for (const plan::Alternative& alternative : result.rejected)
    table.add_row({describe(alternative.evaluated.layout),
                   (alternative.evaluated.fits() ? "is " : "") + alternative.reason});
  return result.rejected.empty() ? "" : "\n" + table.text();
}

nlohmann::json memory_json(const StageMemory& memory) {
  return {{"parameters", memory.parameters}, {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},   {"activations", memory.activations},
          {"workspace", memory.workspace},   {"buffers", memory.buffers}};
}

}  // namespace

std::string plan_for_people(const PlanReport& report) {
  const plan::Problem& problem = report.objective.problem();
  const plan::SearchResult& result = report.result;
  const Evaluated& best = *result.best;
  report::Table facts({{"plan"}, {""}});
  facts.add_row({"model", fmt::format("{}, {} of parameters",
                                      problem.graph.name.empty() ? "graph" : problem.graph.name,
                                      format_size(parameter_bytes(problem.graph)))});
  facts.add_row({"costs", problem.graph.estimated ? "estimated from FLOPs and bytes, not measured"
                                                  : "measured, as they stand in the graph"});
  facts.add_row(
      {"machine", fmt::format("{} of {} devices of {}", best.layout.devices() * problem.tensor,
                              problem.devices.size() * static_cast<size_t>(problem.tensor),
                              problem.machine.name)});
  facts.add_row({"layout", describe(best.layout)});
  if (problem.tensor > 1)
    facts.add_row({"tensor", fmt::format("each op by {} devices together, {} of {} in parts; a "
                                         "device of the layout stands for {}",
                                         problem.tensor, problem.tensor_ops.size(),
                                         problem.graph.ops.size(), problem.tensor)});
  if (report.tried.size() > 1) {
    std::vector<std::string> others;
    for (const job::Tried& tried : report.tried)
      others.push_back(fmt::format("{}: {}", tried.tensor,
                                   tried.seconds > 0 ? time_text(tried.seconds) : "does not fit"));
    facts.add_row({"tensor tried", fmt::format("{}", fmt::join(others, ", "))});
  }
  facts.add_row(
      {"step", fmt::format("{} for {} samples: {:.4g} samples/s", time_text(best.seconds),
                           problem.batch, static_cast<double>(problem.batch) / best.seconds)});
  facts.add_row({"bubble", fmt::format("{:.1f} % of the devices' time is not computing",
                                       100 * report.evaluation.bubble())});
  facts.add_row(
      {"lower bound", result.exact
                          ? "the step is the shortest of all layouts"
                          : fmt::format("{}: no layout is more than {:.1f} % faster",
                                        time_text(result.lower_bound_seconds),
                                        100 * (best.seconds / result.lower_bound_seconds - 1))});
  facts.add_row(
      {"search", fmt::format("{}{}, {} layouts evaluated", format_duration(result.search_seconds),
                             result.timed_out ? " (ended by the time limit)" : "",
                             format_count(result.evaluations))});
  return facts.text() + "\n" + stages_table(report) + rejected_table(result);
}

nlohmann::json plan_for_programs(const PlanReport& report) {
  const plan::SearchResult& result = report.result;
  const Evaluated& best = *result.best;
  const plan::Problem& problem = report.objective.problem();
  nlohmann::json json = to_json(report.plan);
  json["plan_version"] = json["version"];
  json["version"] = kVersion;
  json["command"] = "plan";
  std::set<int> nodes;
  nlohmann::json memory = nlohmann::json::array(), parts = nlohmann::json::array();
  for (int rank = 0; rank < best.layout.devices() * problem.tensor; ++rank) {
    const auto device = rank / problem.tensor;
    nodes.insert(
        (problem.tensor > 1 ? problem.members : problem.devices)[static_cast<size_t>(rank)].node);
    for (int group = 0; group < best.layout.groups(); ++group) {
      const plan::DeviceRange devices = devices_of(best.layout, group);
      for (int i = 0; i < devices.count; ++i)
        if (devices[i] == device) {
          memory.push_back(static_cast<int64_t>(best.memory[static_cast<size_t>(group)].total()));
          parts.push_back(memory_json(best.memory[static_cast<size_t>(group)]));
        }
    }
  }
  json["hosts"] = nodes.size();
  json["threads_per_rank"] = 1;
  json["model"] = problem.graph.name;
  json["cluster"] = problem.machine.name;
  json["devices"] = problem.devices.size() * static_cast<size_t>(problem.tensor);
  nlohmann::json& tried = json["tensor_tried"] = nlohmann::json::array();
  for (const job::Tried& one : report.tried)
    tried.push_back(
        {{"tensor", one.tensor},
         {"step_seconds", one.seconds > 0 ? nlohmann::json(one.seconds) : nlohmann::json()}});
  json["costs"] = problem.graph.estimated ? "estimated" : "measured";
  json["placement"] = best.layout.placement == plan::Placement::apart ? "apart" : "together";
  json["predicted"] = {{"step_seconds", best.seconds},
                       {"samples_per_second", static_cast<double>(problem.batch) / best.seconds},
                       {"bubble", report.evaluation.bubble()},
                       {"memory_bytes", memory},
                       {"memory", parts}};
  json["search_seconds"] = result.search_seconds;
  json["lower_bound_seconds"] = result.lower_bound_seconds;
  json["exact"] = result.exact;
  json["timed_out"] = result.timed_out;
  nlohmann::json& rejected = json["rejected"] = nlohmann::json::array();
  for (const plan::Alternative& alternative : result.rejected)
    rejected.push_back({{"plan", describe(alternative.evaluated.layout)},
                        {"reason", alternative.reason},
                        {"step_seconds", alternative.evaluated.fits()
                                             ? nlohmann::json(alternative.evaluated.seconds)
                                             : nlohmann::json()}});
  return json;
}

std::vector<int> stage_of_ops(const PlanReport& report) {
  const plan::Layout& layout = report.result.best->layout;
  std::vector<int> stages(report.objective.problem().graph.ops.size());
  for (int stage = 0; stage < layout.stages(); ++stage)
    for (const graph::OpIndex op : report.objective.cuts().ops_between(
             layout.cuts[static_cast<size_t>(stage)], layout.cuts[static_cast<size_t>(stage) + 1]))
      stages[static_cast<size_t>(op)] = stage;
  return stages;
}

}  // namespace renkei::cli
