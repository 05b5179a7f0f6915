// renkei bench pipeline: do schedules take the time that they should? The real executor runs a
// small network, with tasks that are stretched to a set time, so that more stages than cores can be
// compared with theory.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/train_output.h"
#include "data/random_data.h"
#include "job/session.h"
#include "networks/mlp.h"
#include "plan/stage_values.h"
#include "report/table.h"
#include "run/cut_program.h"
#include "run/device.h"
#include "run/make_model.h"
#include "run/memory.h"
#include "schedule/evaluate.h"

namespace renkei::cli {
namespace {

constexpr int kChunks = 2;  // of the interleaved schedule

struct Flags {
  std::string task = "20ms";
  int micro_batches = 8, steps = 7;
  int64_t hidden = 256;
};

struct Row {
  std::string schedule;
  int stages, micro_batches;
  double step_seconds, ideal_seconds, bubble;
  int in_flight;             // micro-batches, on the rank that has the most
  int64_t peak_activations;  // bytes, on the rank that has the most
};

// As many layers for each stage, and the loss on the last.
plan::Plan equal_plan(const graph::Graph& graph, const plan::Shape& shape, int64_t batch) {
  plan::Plan plan{.kind = plan::PlanKind::pipeline,
                  .stages = shape.stages,
                  .batch = {.global = batch,
                            .micro = batch / shape.micro_batches,
                            .accumulation = shape.micro_batches},
                  .schedule = std::string(name_of(shape.kind)),
                  .chunks = shape.chunks};
  const size_t ops = graph.ops.size();
  std::vector<int> stage_of(ops);
  for (int s = 0; s < shape.stages; ++s) {
    plan::Stage stage{.ranks = {shape.group_of(s)}};
    for (size_t op = 0; op < ops; ++op) {
      stage_of[op] = static_cast<int>(op * static_cast<size_t>(shape.stages) / ops);
      if (stage_of[op] == s) stage.ops.push_back(graph.ops[op].id);
    }
    plan.stage_list.push_back(std::move(stage));
  }
  const auto values = plan::stage_values(graph, stage_of, shape.stages);
  for (size_t s = 0; s < values.size(); ++s) plan.stage_list[s].loads = values[s].loads;
  return plan;
}

std::vector<Row> measure(const Flags& flags, RankContext& context) {
  comm::Transport& transport = context.world.transport();
  const int ranks = transport.size();
  const double task = parse_duration(flags.task);
  run::install_memory_pools();
  run::set_threads(context.threads);
  comm::Communicator communicator(transport, {});
  const int64_t batch = int64_t{flags.micro_batches} * 4;
  const data::RandomData data(
      {.sample_shape = {flags.hidden}, .count = batch * flags.steps, .target_size = flags.hidden});
  std::vector<Row> rows;
  using Kind = plan::ScheduleKind;
  for (const Kind kind : {Kind::gpipe, Kind::one_f_one_b, Kind::interleaved, Kind::zero_bubble}) {
    const int chunks = kind == Kind::interleaved ? kChunks : 1;
    const plan::Shape shape{.kind = kind,
                            .stages = ranks * chunks,
                            .micro_batches = flags.micro_batches,
                            .chunks = chunks};
    run::Model model =
        run::make_model({.network = networks::make_mlp(flags.hidden, int64_t{4} * ranks * kChunks)},
                        {.objective = networks::Objective::regression,
                         .target = {.label = false, .size = flags.hidden}},
                        {});
    const graph::Graph graph = run::CutProgram(model.training.program, 4).graph();
    // A stage of the interleaved schedule has a part of the work.
    const double seconds = task / chunks;
    NoOutput observer;
    const run::TrainJob job{.model = model,
                            .train_data = data,
                            .held_out = nullptr,
                            .communicator = communicator,
                            .plan = equal_plan(graph, shape, batch)};
    const run::TrainResult result =
        job::train(job, {.steps = flags.steps, .emulated_task_seconds = seconds}, observer);
    std::vector<double> steps;
    for (size_t s = 2; s < result.step_times.size(); ++s)
      steps.push_back(result.step_times[s].seconds);
    const std::vector<plan::StageTimes> times(
        static_cast<size_t>(shape.stages),
        {.forward = seconds, .backward_input = seconds, .backward_weight = seconds});
    const auto ideal = evaluate(schedule::make_schedule(shape), shape, times);
    Row row{.schedule = std::string(name_of(kind)),
            .stages = shape.stages,
            .micro_batches = shape.micro_batches,
            .step_seconds = timeline::quantile(steps, 0.5),
            .ideal_seconds = ideal.seconds,
            .bubble = ideal.bubble()};
    const auto in_flight = schedule::in_flight(schedule::make_schedule(shape), shape);
    row.in_flight = std::ranges::max(in_flight, {}, &plan::InFlight::all).all;
    for (const auto& memory : result.memory)
      row.peak_activations = std::max(row.peak_activations, memory.activations);
    rows.push_back(row);
  }
  return rows;
}

void print(const std::vector<Row>& rows, bool json) {
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Row& row : rows)
      list.push_back({{"schedule", row.schedule},
                      {"stages", row.stages},
                      {"micro_batches", row.micro_batches},
                      {"step_seconds", row.step_seconds},
                      {"ideal_seconds", row.ideal_seconds},
                      {"fraction_of_ideal", row.ideal_seconds / row.step_seconds},
                      {"bubble", row.bubble},
                      {"micro_batches_in_flight", row.in_flight},
                      {"peak_activations", row.peak_activations},
                      {"peers", nlohmann::json::object()},
                      {"ratio", nullptr}});
    fmt::print(
        "{}\n",
        nlohmann::json{{"command", "bench pipeline"}, {"version", kVersion}, {"rows", list}}.dump(
            2));
    return;
  }
  using report::Align;
  report::Table table({{"schedule"},
                       {"stages", Align::right},
                       {"step", Align::right},
                       {"in theory", Align::right},
                       {"of it", Align::right},
                       {"bubble", Align::right},
                       {"in flight", Align::right},
                       {"activations", Align::right}});
  for (const Row& row : rows)
    table.add_row({row.schedule, std::to_string(row.stages), format_duration(row.step_seconds),
                   format_duration(row.ideal_seconds),
                   fmt::format("{:.1f} %", 100 * row.ideal_seconds / row.step_seconds),
                   fmt::format("{:.1f} %", 100 * row.bubble), std::to_string(row.in_flight),
                   format_size(row.peak_activations)});
  fmt::print("{}", table.text());
}

}  // namespace

Command make_bench_pipeline_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      .name = "bench pipeline",
      .summary = "the schedules of a pipeline against theory, with tasks of a set time",
      .sections = {},
      .add_flags =
          [flags](Arguments& arguments) {
            arguments
                .option("--task", flags->task, "time of a forward, and of each half of a backward")
                .value_name("DURATION")
                .show_default();
            arguments.option("--micro-batches", flags->micro_batches, "micro-batches of a step")
                .range(1, 1 << 16)
                .show_default();
            arguments.option("--steps", flags->steps, "steps to train; the first two do not count")
                .range(3, 1 << 20)
                .show_default();
            arguments.option("--hidden", flags->hidden, "width of the network's layers")
                .range(int64_t{1}, int64_t{1} << 20)
                .show_default();
          },
      .run =
          [flags](Invocation& invocation) {
            const int ranks = expected_ranks(invocation);
            if (ranks < 2)
              throw Error(ErrorCode::usage, "a pipeline needs at least 2 ranks", "add -n 4");
            if (flags->micro_batches % ranks != 0)
              throw Error(ErrorCode::usage,
                          fmt::format("the interleaved schedule needs micro-batches in rounds "
                                      "of {} ranks, not {}",
                                      ranks, flags->micro_batches),
                          fmt::format("use --micro-batches {}", 2 * ranks));
            return run_on_ranks(invocation, [&](RankContext& context) {
              const auto rows = measure(*flags, context);
              if (context.world.transport().rank() == 0) print(rows, invocation.json);
            });
          }};
}

}  // namespace renkei::cli
