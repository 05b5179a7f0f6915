// renkei simulate: how would it run on a machine that is not there?
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/simulate_output.h"
#include "cluster/local_machine.h"
#include "graph/graph_json.h"
#include "job/measured_graph.h"
#include "job/planned_network.h"
#include "sim/trace.h"
#include "sim/what_if.h"

namespace renkei::cli {
namespace {

struct Options {
  std::string model, graph_file, devices, plan = "data", detail = "rounds";
  int64_t batch = 0, batch_per_device = 0;  // 0: not given
  int micro_batches = 1;
  bool measure = false, sensitivity = false, file_per_sample = false;
  double device_samples_per_second = 0;
  double jitter = 0;
  double load_rate = 0;
  double samples = 0, epochs = 0;
  std::string sample_bytes, dataset_bytes, start = "0s";
  double hours_between_failures = 0;
  std::string save_every = "0s", save = "0s", restart = "0s";
};

// What a device computes at once is what is measured, but for batches that would take long.
constexpr int64_t kMostMeasuredSamples = 64;

graph::Graph make_graph(const Invocation& invocation, const Options& options,
                        const std::string& model, int64_t samples) {
  if (!options.graph_file.empty()) return graph::load_graph(options.graph_file);
  if (model.empty())
    throw Error(ErrorCode::usage, "there is no model to simulate",
                "give --model NAME|FILE.pt2 or --graph FILE.json (renkei model list)");
  Settings settings = invocation.settings;
  settings.set("model.name", model, "--model");
  if (!options.measure) return job::estimated_graph(settings);
  if (settings.text("plan.cluster") != "local")
    throw Error(ErrorCode::usage, "--measure measures this machine, not another cluster",
                "leave --measure or --cluster out");
  return job::measured_graph(settings,
                             {.samples = std::clamp<int64_t>(samples, 1, kMostMeasuredSamples),
                              .quiet = invocation.quiet});
}

// The machine, and for this one also how many of its devices there are.
cluster::Description make_machine(const Invocation& invocation, int devices) {
  const std::string& name = invocation.settings.text("plan.cluster");
  cluster::Description machine = name == "local"
                                     ? cluster::local_machine(cluster::measure_machine(), devices)
                                     : cluster::load_description(name);
  for (const std::string& assignment : invocation.cluster_changes) sim::change(machine, assignment);
  return machine;
}

// What the command line says, or else the [run] of the description.
sim::Scenario make_scenario(const Invocation& invocation, const Options& options,
                            cluster::Description machine, int devices) {
  const Settings& settings = invocation.settings;
  const cluster::Run& run = machine.run;
  sim::Scenario scenario{.batch = options.batch};
  scenario.batch_per_device = options.batch_per_device > 0 ? options.batch_per_device
                              : run.batch_per_device > 0   ? run.batch_per_device
                                                           : 32;
  const int64_t of_device =
      scenario.batch > 0 ? scenario.batch / devices : scenario.batch_per_device;
  scenario.graph =
      make_graph(invocation, options,
                 options.model.empty() && options.graph_file.empty() ? run.model : options.model,
                 of_device / options.micro_batches);
  scenario.micro_batches = options.micro_batches;
  if (options.plan == "auto") scenario.search = plan::search_options(settings);
  scenario.optimizer_state = settings.real("plan.optimizer_state");
  scenario.memory_bytes = settings.size_unless_auto("plan.memory").value_or(0);
  const double rate = options.device_samples_per_second > 0 ? options.device_samples_per_second
                                                            : run.device_samples_per_second;
  if (rate > 0) scenario.device_samples_per_second = rate;

  sim::ReductionOptions& reduction = scenario.step.reduction;
  reduction.detail = sim::parse_detail(options.detail);
  const std::string& algorithm = settings.text("comm.algorithm");
  reduction.algorithm = comm::parse_algorithm(
      algorithm == "automatic" && !run.algorithm.empty() ? run.algorithm : algorithm);
  const bool narrow = settings.text("comm.wire") != "f32" || run.wire == "f16";
  reduction.bytes_factor = narrow ? 0.5 : 1;
  reduction.overlap = settings.boolean("comm.overlap") && run.overlap;
  if (const auto bucket = settings.size_unless_auto("comm.bucket"))
    reduction.bucket_bytes = static_cast<double>(*bucket);
  scenario.step.jitter = options.jitter;
  scenario.step.steps = 20;
  if (options.load_rate > 0) scenario.step.load_seconds_per_sample = 1 / options.load_rate;
  scenario.step.seed = static_cast<uint64_t>(settings.integer("run.seed"));

  const auto size = [](const std::string& text) { return static_cast<double>(parse_size(text)); };
  scenario.data = {.sample_bytes = !options.sample_bytes.empty()
                                       ? size(options.sample_bytes)
                                       : static_cast<double>(run.sample_bytes),
                   .file_per_sample = options.file_per_sample};
  const double samples = options.samples > 0 ? options.samples : run.samples;
  const double epochs = options.epochs > 0 ? options.epochs : run.epochs;
  scenario.data.bytes = !options.dataset_bytes.empty() ? size(options.dataset_bytes)
                                                       : samples * scenario.data.sample_bytes;
  scenario.training_samples = samples * (epochs > 0 ? epochs : 1);
  scenario.start_seconds = parse_duration(options.start);
  scenario.failures = {.device_hours_between = options.hours_between_failures,
                       .save_every_seconds = parse_duration(options.save_every),
                       .save_seconds = parse_duration(options.save),
                       .restart_seconds = parse_duration(options.restart),
                       .seed = scenario.step.seed};
  scenario.machine = std::move(machine);
  return scenario;
}

std::vector<int> device_counts(const Options& options, const cluster::Description& machine) {
  const std::string& text = options.devices.empty() ? machine.run.devices : options.devices;
  if (text.empty()) return {machine.device_count()};
  std::vector<int> counts;
  for (const int64_t count : parse_sweep(text)) {
    if (count < 1 || count > 1 << 20)
      throw Error(ErrorCode::usage, fmt::format("{} is no number of devices", count),
                  "write 64, or a sweep: 8:1024:*2");
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

void write_run_directory(const Invocation& invocation, const SimulationReport& report) {
  const std::filesystem::path directory = invocation.settings.text("run.dir");
  if (directory.empty()) return;
  std::filesystem::create_directories(directory);
  write_file_atomically(directory / "config.toml", invocation.settings.to_toml());
  const sim::ScalingRow& last = report.rows.back();
  sim::write_predicted_timeline(last.step.evaluation, last.batch, directory);
  write_file_atomically(directory / "result.json", simulation_for_programs(report).dump(2) + "\n");
}

int run(Invocation& invocation, const Options& options) {
  const double begin = now_seconds();
  const bool local = invocation.settings.text("plan.cluster") == "local";
  cluster::Description machine = make_machine(invocation, 1);
  const std::vector<int> counts = device_counts(options, machine);
  sim::Scenario scenario = make_scenario(invocation, options, std::move(machine), counts.front());
  SimulationReport report{.scenario = scenario};
  if (local) {
    // This machine is divided among as many devices as are asked for.
    const double cores = cluster::measure_machine().cores;
    for (const int count : counts) {
      scenario.machine = make_machine(invocation, count);
      scenario.replicas_of_a_node_share = invocation.settings.boolean("comm.shared_memory");
      // What was measured on a core by itself takes longer where ranks share it.
      const double sharing = std::max(1.0, count / cores);
      scenario.step.compute_factor = scenario.graph.estimated ? 1 : sharing;
      if (options.load_rate > 0)
        scenario.step.load_seconds_per_sample = sharing / options.load_rate;
      report.rows.push_back(sim::simulate_on(scenario, count));
    }
    const double first = report.rows.front().samples_per_second / counts.front();
    for (sim::ScalingRow& row : report.rows)
      row.efficiency = row.samples_per_second / (first * row.devices);
  } else {
    report.rows = sim::simulate_scaling(scenario, counts);
  }
  if (options.sensitivity) report.gains = sim::sensitivity(scenario, counts.back());
  report.simulation_seconds = now_seconds() - begin;
  write_run_directory(invocation, report);
  if (!invocation.json) {
    fmt::print("{}", simulation_for_people(report));
    return 0;
  }
  nlohmann::json json = simulation_for_programs(report);
  if (const std::string& directory = invocation.settings.text("run.dir"); !directory.empty())
    json["run_dir"] = directory;
  fmt::print("{}\n", json.dump(2));
  return 0;
}

void add_training_flags(Arguments& arguments, Options& options) {
  arguments.option("--samples", options.samples, "samples of the data set").range(1.0, 1e18);
  arguments.option("--epochs", options.epochs, "for the time of the whole training")
      .range(0.0, 1e9);
  arguments.option("--sample-bytes", options.sample_bytes,
                   "bytes of a sample in storage, to see whether training waits for them");
  arguments.option("--dataset-bytes", options.dataset_bytes,
                   "bytes of the data set; default samples × their bytes");
  arguments.flag("--file-per-sample", options.file_per_sample, "each sample is opened by itself");
  arguments.option("--start-time", options.start, "before the first step").show_default();
  arguments
      .option("--hours-between-failures", options.hours_between_failures,
              "of one device, the mean; default none fails")
      .range(0.0, 1e12);
  arguments.option("--save-every", options.save_every, "a checkpoint each so much work")
      .show_default();
  arguments.option("--save-time", options.save, "of a checkpoint").show_default();
  arguments.option("--restart-time", options.restart, "after a failure").show_default();
}

}  // namespace

Command make_simulate_command() {
  const auto options = std::make_shared<Options>();
  return {
      .name = "simulate",
      .summary = "predict how training would run on a machine that is not there",
      .sections = {"plan"},
      .add_flags =
          [options](Arguments& arguments) {
            arguments.option("--model", options->model, "a network or a .pt2 file")
                .value_name("NAME|FILE.pt2");
            arguments.option("--graph", options->graph_file, "the graph in this JSON file");
            arguments.flag("--measure", options->measure,
                           "measure the ops on this machine instead of counting their work");
            arguments.option("--devices", options->devices, "how many: a sweep such as 8:1024:*2")
                .value_name("SWEEP");
            arguments.option("--plan", options->plan, "data parallel, or the best that is found")
                .one_of({"data", "auto"})
                .show_default();
            arguments.option("--detail", options->detail, "of the communication")
                .one_of({"closed", "rounds", "flows"})
                .show_default();
            arguments.option("--batch", options->batch, "samples of a step on all devices")
                .range(int64_t{1}, int64_t{1} << 40);
            arguments
                .option("--batch-per-device", options->batch_per_device,
                        "samples of a step on each device (default 32)")
                .range(int64_t{1}, int64_t{1} << 40);
            arguments.option("--micro-batches", options->micro_batches, "of data parallel training")
                .range(1, 1 << 20);
            arguments
                .option("--device-rate", options->device_samples_per_second,
                        "samples/s that one device by itself was measured at")
                .range(1e-9, 1e12);
            arguments
                .option("--load-rate", options->load_rate,
                        "samples/s that a device gets from its loader, where that does not hide "
                        "behind computing")
                .range(1e-9, 1e12);
            arguments
                .option("--jitter", options->jitter,
                        "of each computation: relative standard deviation")
                .range(0.0, 0.5);
            arguments.flag("--sensitivity", options->sensitivity,
                           "what would help most: 10 % faster links, devices, storage?");
            add_training_flags(arguments, *options);
          },
      .run = [options](Invocation& invocation) { return run(invocation, *options); },
      .changes_cluster = true,
      .own_flags = {"--devices"}};
}

}  // namespace renkei::cli
