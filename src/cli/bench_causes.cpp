// renkei bench causes: does the report find the cause? The real executor trains a small network
// over MPI, with tasks that are stretched to a set time and one cause of delay put in; the verdict
// and the gain that it promises are compared with a run without the cause.
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
#include "job/run_directory.h"
#include "job/run_timeline.h"
#include "job/session.h"
#include "networks/mlp.h"
#include "plan/stage_values.h"
#include "report/run_report.h"
#include "report/table.h"
#include "run/cut_program.h"
#include "run/device.h"
#include "run/make_model.h"
#include "run/memory.h"

namespace renkei::cli {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kHidden = 64;

struct Causes {
  int stages = 1, micro_batches = 4;
  plan::ScheduleKind kind = plan::ScheduleKind::accumulate;
  double task = 0.010, load = 0;  // seconds of a forward, of a load
  std::vector<double> work = {};  // of the stages
  int slow_rank = -1;
  double slowness = 1;
};

struct Scenario {
  std::string name;
  Causes with, without;
  std::string cause;
  int rank;
  std::string what_if;  // how the line begins that takes the cause away
};

Causes changed(Causes causes, const std::function<void(Causes&)>& change) {
  change(causes);
  return causes;
}

std::vector<Scenario> scenarios() {
  using Kind = plan::ScheduleKind;
  const Causes data, hybrid{.stages = 2, .micro_batches = 16, .kind = Kind::one_f_one_b},
      deep{.stages = 4, .micro_batches = 16, .kind = Kind::one_f_one_b},
      gpipe{.stages = 4, .micro_batches = 16, .kind = Kind::gpipe};
  const auto slow = [](int rank, double factor) {
    return [=](Causes& c) {
      c.slow_rank = rank;
      c.slowness = factor;
    };
  };
  const auto few = [](Causes& c) { c.micro_batches = 4; };
  const auto twice = [](Causes& c) {
    c.micro_batches = 8;
    c.task /= 2;
  };
  const auto work = [](std::vector<double> factors) {
    return [=](Causes& c) { c.work = factors; };
  };
  return {
      {"data: rank 3 at 1.2 ×", changed(data, slow(3, 1.2)), data, "wait", 3, "rank 3"},
      {"data: rank 1 at 1.5 ×", changed(data, slow(1, 1.5)), data, "wait", 1, "rank 1"},
      {"data: slow source", changed(data, [](Causes& c) { c.load = 0.02; }), data, "data", -1,
       "data always"},
      {"hybrid: rank 1 at 1.3 ×", changed(hybrid, slow(1, 1.3)), hybrid, "wait", 1, "rank 1"},
      {"hybrid: rank 2 at 1.5 ×", changed(hybrid, slow(2, 1.5)), hybrid, "wait", 2, "rank 2"},
      {"hybrid: stages 1.5 : 0.5", changed(hybrid, work({1.5, 0.5})), hybrid, "imbalance", -1,
       "stages balanced"},
      {"pipeline: stages 0.8 : 1.6 : 0.8 : 0.8", changed(deep, work({0.8, 1.6, 0.8, 0.8})), deep,
       "imbalance", 1, "stages balanced"},
      {"gpipe: stages 0.9 : 0.9 : 0.7 : 1.5", changed(gpipe, work({0.9, 0.9, 0.7, 1.5})), gpipe,
       "imbalance", 3, "stages balanced"},
      {"pipeline: 4 micro-batches", changed(deep, few), changed(changed(deep, few), twice),
       "bubble", -1, "8 micro"},
      {"gpipe: 4 micro-batches", changed(gpipe, few), changed(changed(gpipe, few), twice), "bubble",
       -1, "8 micro"},
      {"pipeline: slow source", changed(deep, [](Causes& c) { c.load = 0.02; }), deep, "data", -1,
       "data always"},
  };
}

// Stages of as many ops each, on as many ranks each.
plan::Plan plan_of(const graph::Graph& graph, const Causes& causes, int64_t batch) {
  const int replicas = kRanks / causes.stages;
  plan::Plan plan{.kind = plan::PlanKind::hybrid,
                  .stages = causes.stages,
                  .replicas = replicas,
                  .batch = {.global = batch,
                            .micro = batch / causes.micro_batches / replicas,
                            .accumulation = causes.micro_batches,
                            .ranks = replicas},
                  .schedule = std::string(name_of(causes.kind))};
  const size_t ops = graph.ops.size();
  std::vector<int> stage_of(ops);
  for (int s = 0; s < causes.stages; ++s) {
    plan::Stage stage;
    for (int r = 0; r < replicas; ++r) stage.ranks.push_back(s * replicas + r);
    for (size_t op = 0; op < ops; ++op) {
      stage_of[op] = static_cast<int>(op * static_cast<size_t>(causes.stages) / ops);
      if (stage_of[op] == s) stage.ops.push_back(graph.ops[op].id);
    }
    plan.stage_list.push_back(std::move(stage));
  }
  const auto values = plan::stage_values(graph, stage_of, causes.stages);
  for (size_t s = 0; s < values.size(); ++s) plan.stage_list[s].loads = values[s].loads;
  return plan;
}

// One run; rank 0 gets its report.
report::RunReport train(const Causes& causes, int steps, const Settings& settings,
                        RankContext& context, const std::filesystem::path& directory) {
  comm::Transport& transport = context.world.transport();
  comm::Communicator communicator(transport, {});
  const int64_t batch = int64_t{causes.micro_batches} * kRanks;
  const data::RandomData data(
      {.sample_shape = {kHidden}, .count = batch * steps, .target_size = kHidden});
  run::Model model = run::make_model(
      {.network = networks::make_mlp(kHidden, 4 * kRanks)},
      {.objective = networks::Objective::regression, .target = {.label = false, .size = kHidden}},
      {});
  const graph::Graph graph = run::CutProgram(model.training.program, 4).graph();
  job::Phases phases;
  phases.open(settings, directory, transport);
  const run::TrainJob job{.model = model,
                          .train_data = data,
                          .held_out = nullptr,
                          .communicator = communicator,
                          .plan = plan_of(graph, causes, batch),
                          .timeline = phases.file()};
  NoOutput observer;
  job::train(job,
             {.steps = steps,
              .emulated_task_seconds =
                  causes.task * (transport.rank() == causes.slow_rank ? causes.slowness : 1),
              .emulated_stage_work = causes.work,
              .emulated_load_seconds = causes.load},
             observer);
  phases.close(directory, transport, {.operation = "end of a scenario"});
  return transport.rank() == 0 ? report::read_run(directory) : report::RunReport();
}

struct Row {
  const Scenario* scenario;
  report::Verdict verdict;
  double with, without, predicted, replay_error, unexplained, closes;
  // Of a cause that is no single rank's, any may be named.
  bool right() const {
    return verdict.cause == scenario->cause &&
           (scenario->rank < 0 || verdict.rank == scenario->rank);
  }
  double error() const { return (with - predicted) / (with - without) - 1; }
};

Row row_of(const Scenario& scenario, const report::RunReport& with,
           const report::RunReport& without) {
  Row row{.scenario = &scenario,
          .verdict = with.verdict,
          .with = with.what_ifs.measured_seconds,
          .without = without.what_ifs.measured_seconds,
          .predicted = with.what_ifs.measured_seconds,
          .replay_error = with.what_ifs.replay_error()};
  for (const report::WhatIf& one : with.what_ifs.list)
    if (one.cause.starts_with(scenario.what_if)) row.predicted = one.step_seconds;
  for (const timeline::StepTimes& rank : with.attribution.ranks) {
    double sum = 0;
    for (const double part : rank.by_category) sum += part;
    row.closes = std::max(row.closes, std::abs(sum / rank.seconds - 1));
    row.unexplained = std::max(row.unexplained, rank[timeline::Category::other] / rank.seconds);
  }
  return row;
}

void print(const std::vector<Row>& rows, bool as_json) {
  using report::Align;
  report::Table table({{"scenario"},
                       {"verdict"},
                       {"right"},
                       {"step", Align::right},
                       {"predicted without", Align::right},
                       {"measured without", Align::right},
                       {"gain off by", Align::right},
                       {"replay", Align::right},
                       {"unexplained", Align::right}});
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    const std::string rank = row.verdict.rank < 0 ? "" : fmt::format(", rank {}", row.verdict.rank);
    table.add_row(
        {row.scenario->name, row.verdict.cause + rank, row.right() ? "yes" : "no",
         fmt::format("{:.1f} ms", 1e3 * row.with), fmt::format("{:.1f} ms", 1e3 * row.predicted),
         fmt::format("{:.1f} ms", 1e3 * row.without), fmt::format("{:+.1f} %", 100 * row.error()),
         fmt::format("{:+.1f} %", 100 * row.replay_error),
         fmt::format("{:.2f} %", 100 * row.unexplained)});
    list.push_back({{"scenario", row.scenario->name},
                    {"cause", row.scenario->cause},
                    {"found", row.verdict.cause},
                    {"rank", row.verdict.rank},
                    {"right", row.right()},
                    {"step_seconds", row.with},
                    {"predicted_seconds", row.predicted},
                    {"without_seconds", row.without},
                    {"gain_error", row.error()},
                    {"replay_error", row.replay_error},
                    {"sum_error", row.closes},
                    {"unexplained", row.unexplained}});
  }
  if (as_json)
    fmt::print(
        "{}\n",
        nlohmann::json{{"command", "bench causes"}, {"version", kVersion}, {"rows", list}}.dump(2));
  else
    fmt::print("{}", table.text());
}

void measure(Invocation& invocation, RankContext& context, int steps) {
  run::install_memory_pools();
  run::set_threads(1);
  comm::Transport& transport = context.world.transport();
  context.run_directory = job::make_run_directory(invocation.settings, "causes", transport);
  const auto all = scenarios();
  std::vector<Row> rows;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto directory = [&](const char* what) {
      return context.run_directory / fmt::format("{}-{}", i + 1, what);
    };
    const auto with = train(all[i].with, steps, invocation.settings, context, directory("with"));
    const auto without =
        train(all[i].without, steps, invocation.settings, context, directory("without"));
    if (transport.rank() == 0) rows.push_back(row_of(all[i], with, without));
  }
  if (transport.rank() == 0) print(rows, invocation.json);
}

}  // namespace

Command make_bench_causes_command() {
  const auto steps = std::make_shared<int>(12);
  return {
      .name = "bench causes",
      .summary = "does the report find a cause of delay that was put in?",
      .sections = {"train", "comm"},
      .add_flags =
          [steps](Arguments& arguments) {
            arguments.option("--scenario-steps", *steps, "steps of each run")
                .range(6, 10'000)
                .show_default();
          },
      .run =
          [steps](Invocation& invocation) {
            if (expected_ranks(invocation) != kRanks)
              throw Error(ErrorCode::usage, "the scenarios are for 4 ranks", "start it with -n 4");
            return run_on_ranks(
                invocation, [&](RankContext& context) { measure(invocation, context, *steps); });
          }};
}

}  // namespace renkei::cli
