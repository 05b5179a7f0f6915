// renkei plan: who computes what? Needs neither devices nor weights.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/plan_output.h"
#include "cluster/local_machine.h"
#include "graph/drawing.h"
#include "graph/graph_json.h"
#include "job/measured_graph.h"
#include "job/no_plan.h"
#include "job/planned_network.h"
#include "job/planning.h"
#include "job/tensor_plans.h"
#include "networks/network.h"
#include "plan/plan_file.h"
#include "schedule/drawing.h"

namespace renkei::cli {
namespace {

struct Options {
  std::string model, graph_file;
  int64_t batch = 0;          // 0: not given
  int64_t micro_batches = 0;  // 0: not given
  bool measure = false;
  std::string output, drawing, save_graph;
};

// For a measurement: enough to be exact, few enough to be quick.
constexpr int64_t kMeasuredSamples = 8;

graph::Graph make_graph(const Invocation& invocation, const Options& options) {
  if (options.graph_file.empty() == options.model.empty()) {
    std::vector<std::string> names;
    for (const networks::NetworkDescription& network : networks::networks())
      names.push_back(network.name);
    throw Error(ErrorCode::usage, "give either --graph FILE.json or --model NAME|FILE.pt2",
                fmt::format("the networks that need no file are {}", fmt::join(names, ", ")));
  }
  if (!options.graph_file.empty()) return graph::load_graph(options.graph_file);
  if (options.measure && invocation.settings.text("plan.cluster") != "local")
    throw Error(ErrorCode::usage, "--measure measures this machine, not another cluster",
                "leave --measure or --cluster out");
  Settings settings = invocation.settings;
  settings.set("model.name", options.model, "--model");
  if (!options.measure) return job::estimated_graph(settings);
  return job::measured_graph(settings, {.samples = kMeasuredSamples, .quiet = invocation.quiet});
}

job::PlanningRequest make_request(const Invocation& invocation, const Options& options) {
  const Settings& settings = invocation.settings;
  job::PlanningRequest request{.graph = make_graph(invocation, options)};
  const graph::Graph& graph = request.graph;
  auto devices = settings.integer_unless_auto("plan.devices");
  if (!devices && invocation.ranks > 0) devices = invocation.ranks;
  if (const std::string& cluster = settings.text("plan.cluster"); cluster == "local") {
    const cluster::MachineSpeed speed = cluster::measure_machine();
    request.machine = local_machine(speed, static_cast<int>(devices.value_or(speed.cores)));
    request.ranks_share_memory = settings.boolean("comm.shared_memory");
  } else {
    request.machine = cluster::load_description(cluster);
  }
  request.devices = static_cast<int>(devices.value_or(request.machine.device_count()));
  // Estimates in a file were made for some device; ours are for the devices of the cluster.
  if (graph.estimated && !has_work(graph))
    throw Error(ErrorCode::data,
                fmt::format("{}: its costs are estimates, but ops lack flops and traffic_bytes",
                            options.graph_file),
                "add them, or leave \"estimated\" out to use the seconds as they are");
  request.batch = options.batch > 0 ? options.batch
                  : graph.estimated ? int64_t{32} * request.devices
                                    : graph.batch;
  request.memory_bytes = settings.size_unless_auto("plan.memory").value_or(0);
  request.optimizer_state = settings.real("plan.optimizer_state");
  return request;
}

// A network can be divided op by op; of a graph in a file nothing is known but costs.
struct Divided {
  std::optional<program::Program> program;
  job::TensorPlans plans;
};
Divided make_divided(const Invocation& invocation, const Options& options) {
  Divided divided;
  if (options.model.empty()) return divided;
  Settings settings = invocation.settings;
  settings.set("model.name", options.model, "--model");
  const job::PlannedNetwork planned = job::planned_network(settings);
  divided.program = capture::programs_of(planned.open, planned.loss).training;
  divided.plans.make_graph = [=, quiet = invocation.quiet,
                              program = *divided.program](const shard::ShardOptions& part) {
    if (!options.measure) return job::estimated_graph(settings, program, part);
    return job::measured_graph(settings,
                               {.samples = kMeasuredSamples, .quiet = quiet, .part = part});
  };
  divided.plans.trial = job::TensorPlans::Trial::if_needed;  // each T takes a search of its own
  return divided;
}

plan::SearchOptions make_search_options(const Invocation& invocation, const Options& options,
                                        int64_t batch) {
  plan::SearchOptions search = plan::search_options(invocation.settings);
  if (options.micro_batches > 0) {
    if (batch % options.micro_batches != 0)
      throw Error(ErrorCode::usage,
                  fmt::format("a batch of {} can't be divided into {} micro-batches", batch,
                              options.micro_batches),
                  "choose a number that divides the batch");
    search.micro_batches = {static_cast<int>(options.micro_batches)};
  }
  return search;
}

void write_files(const PlanReport& report, const Options& options) {
  if (!options.output.empty()) save_plan(report.plan, options.output);
  if (!options.save_graph.empty()) save_graph(report.objective.problem().graph, options.save_graph);
  if (options.drawing.empty()) return;
  write_file_atomically(options.drawing + ".graph.svg",
                        svg_drawing(report.objective.problem().graph, stage_of_ops(report)));
  write_file_atomically(options.drawing + ".schedule.svg",
                        svg_drawing(report.evaluation, report.plan.shape()));
}

int run(Invocation& invocation, const Options& options) {
  const job::PlanningRequest request = make_request(invocation, options);
  const plan::SearchOptions search_options =
      make_search_options(invocation, options, request.batch);
  const schedule::ScheduledSteps steps;
  Divided divided = make_divided(invocation, options);
  divided.plans.program = divided.program ? &*divided.program : nullptr;
  const job::Searched searched = job::search_plans(invocation.settings, request, divided.plans,
                                                   steps, search_options, invocation.quiet);
  const plan::Objective& objective = *searched.objective;
  const plan::SearchResult& result = searched.result;
  if (!result.best)
    job::throw_nothing_fits(*searched.problem, steps, search_options, result,
                            {"--memory", "--devices"});

  const plan::Shape shape = result.best->layout.shape();
  const PlanReport report{.objective = objective,
                          .result = result,
                          .tried = searched.tried,
                          .plan = make_plan(objective, *result.best),
                          .evaluation = evaluate(schedule::make_schedule(shape), shape,
                                                 result.best->times, schedule::Record::events)};
  write_files(report, options);
  fmt::print("{}",
             invocation.json ? plan_for_programs(report).dump(2) + "\n" : plan_for_people(report));
  return 0;
}

}  // namespace

Command make_plan_command() {
  const auto options = std::make_shared<Options>();
  return {
      .name = "plan",
      .summary = "decide who computes what; needs no device",
      .sections = {"plan"},
      .add_flags =
          [options](Arguments& arguments) {
            arguments.option("--graph", options->graph_file, "plan the graph in this JSON file");
            arguments
                .option("--model", options->model,
                        "plan a network or a .pt2 file as `renkei train --model` would train it; "
                        "its work is counted")
                .value_name("NAME|FILE.pt2");
            arguments.flag("--measure", options->measure,
                           "measure the ops of that network on this machine instead");
            arguments.option("--batch", options->batch, "samples of a step")
                .range(int64_t{1}, int64_t{1} << 40);
            arguments
                .option("--micro-batches", options->micro_batches,
                        "micro-batches of a step; default the best number")
                .range(1, 1 << 20);
            arguments.option("-o,--output", options->output, "write the plan to this file");
            arguments
                .option("--draw", options->drawing, "write NAME.graph.svg and NAME.schedule.svg")
                .value_name("NAME");
            arguments.option("--save-graph", options->save_graph,
                             "write the planned graph to this file");
          },
      .run = [options](Invocation& invocation) { return run(invocation, *options); },
      .former_flags = {{"--capture",
                        "leave it out: networks are always planned as they are trained"},
                       {"--dimension", "write it as a setting: --set model.layers=96"}}};
}

}  // namespace renkei::cli
