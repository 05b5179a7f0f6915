#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/tune_target.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

constexpr size_t kSeeds = 3;  // the best settings of a smaller search that a larger one begins with

struct Flags {
  std::string target;
  std::vector<std::string> parameters, constraints;
  bool maximise = false;
  int trials = 30, patience = 0, parallel = 1, startup = 10;
  std::string time, stages;
  double give_up = 3;
  std::filesystem::path journal, output;
};

struct StageResult {
  TuneTarget target;
  int ranks = 1;
  std::vector<tune::Trial> trials;
};

double value_of(const TuneTarget& target, double loss) {
  return target.maximise ? -loss : loss;
}

std::string settings_text(const TuneTarget& target, const tune::Point& point) {
  std::string text;
  for (const auto& [name, value] : tune::texts_of(target.space, point))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

TuneRequest request_of(const Invocation& invocation, const Flags& flags) {
  TuneRequest request{.target = flags.target,
                      .words = invocation.rest,
                      .parameters = flags.parameters,
                      .constraints = flags.constraints,
                      .maximise = flags.maximise,
                      .ranks = std::max(1, invocation.ranks)};
  const std::vector<std::string> known{"linpack", "collectives", "train"};
  if (request.target.empty() && request.words.empty())
    throw Error(ErrorCode::usage, "tune needs to know what to measure",
                "name linpack, collectives or train, or give a command after --");
  if (!request.target.empty() && std::ranges::count(known, request.target) == 0)
    throw Error(ErrorCode::usage, fmt::format("there is no target '{}'", request.target),
                "it is linpack, collectives, train, or a command after --");
  return request;
}

// 1 rank, then a node, then more, as MN-1's operators did: small runs are cheap and tell much.
std::vector<int> ranks_of_stages(const Invocation& invocation, const Flags& flags) {
  std::vector<int> ranks;
  if (!flags.stages.empty())
    for (const int64_t count : parse_sweep(flags.stages)) ranks.push_back(static_cast<int>(count));
  if (ranks.empty()) ranks.push_back(std::max(1, invocation.ranks));
  return ranks;
}

// The best points of the stage before, completed with what it did not have.
std::vector<tune::Point> seeds_from(const StageResult& before, const TuneTarget& target) {
  std::vector<tune::Trial> sorted;
  for (const tune::Trial& trial : before.trials)
    if (trial.loss) sorted.push_back(trial);
  std::ranges::stable_sort(sorted, {}, [](const tune::Trial& trial) { return *trial.loss; });
  std::vector<tune::Point> seeds;
  for (const tune::Trial& trial : sorted) {
    tune::Point point = target.usual;
    for (const auto& [name, value] : trial.point) {
      const tune::Parameter *then = before.target.space.find(name), *now = target.space.find(name);
      if (now && then && now->choices == then->choices) point[name] = value;
    }
    if (point.size() > 0 && tune::satisfies(target.space, point) &&
        std::ranges::count(seeds, point) == 0)
      seeds.push_back(point);
    if (seeds.size() == kSeeds) break;
  }
  return seeds;
}

StageResult run_stage(const Invocation& invocation, const Flags& flags, TuneRequest request,
                      int ranks, const StageResult* before, double seconds) {
  request.ranks = ranks;
  StageResult stage{.target = make_tune_target(request), .ranks = ranks};
  const TuneTarget& target = stage.target;
  tune::SearchOptions options{
      .sampler = {.seed = static_cast<uint64_t>(invocation.settings.integer("run.seed")),
                  .startup = flags.startup},
      .trials = flags.trials,
      .seconds = seconds,
      .patience = flags.patience,
      .parallel = flags.parallel,
      .give_up_factor = flags.give_up,
      .journal = flags.journal,
      .subject =
          fmt::format("{} on {} ranks: {}", target.name, ranks, fmt::join(request.words, " "))};
  if (!target.usual.empty()) options.first.push_back(target.usual);
  if (before)
    for (const tune::Point& seed : seeds_from(*before, target))
      if (seed != target.usual) options.first.push_back(seed);
  if (!invocation.quiet)
    options.progress = [&](const tune::Trial& trial, const std::vector<tune::Trial>& trials) {
      const tune::Trial* best = tune::best_of(trials);
      fmt::print(stderr, "{} rank{}, trial {}/{}: {}  {}{}\n", ranks, ranks == 1 ? "" : "s",
                 trial.number + 1, flags.trials,
                 trial.loss ? fmt::format("{:.5g} {}", value_of(target, *trial.loss), target.unit)
                            : "stopped or failed",
                 settings_text(target, trial.point),
                 best ? fmt::format("  (best {:.5g})", value_of(target, *best->loss)) : "");
    };
  stage.trials = tune::search(
      target.space,
      [&](const tune::Point& point, double limit) { return measure_target(target, point, limit); },
      options);
  return stage;
}

std::optional<double> usual_value(const StageResult& stage) {
  for (const tune::Trial& trial : stage.trials)
    if (!stage.target.usual.empty() && trial.point == stage.target.usual && trial.loss)
      return value_of(stage.target, *trial.loss);
  return std::nullopt;
}

void print_json(const Invocation& invocation, const StageResult& stage, const tune::Trial& best) {
  nlohmann::json history = nlohmann::json::array();
  for (const tune::Trial& trial : stage.trials)
    history.push_back({{"trial", trial.number},
                       {"value", trial.loss ? nlohmann::json(value_of(stage.target, *trial.loss))
                                            : nlohmann::json()},
                       {"settings", tune::texts_of(stage.target.space, trial.point)},
                       {"seconds", trial.seconds}});
  nlohmann::json shares = nlohmann::json::object();
  for (const auto& [name, share] : tune::importance(stage.target.space, stage.trials))
    shares[name] = share;
  const auto usual = usual_value(stage);
  fmt::print("{}\n",
             nlohmann::json{{"command", invocation.command},
                            {"version", kVersion},
                            {"ranks", stage.ranks},
                            {"hosts", 1},
                            {"target", stage.target.name},
                            {"unit", stage.target.unit},
                            {"best",
                             {{"value", value_of(stage.target, *best.loss)},
                              {"settings", tune::texts_of(stage.target.space, best.point)}}},
                            {"default_value", usual ? nlohmann::json(*usual) : nlohmann::json()},
                            {"trials", stage.trials.size()},
                            {"history", history},
                            {"importance", shares}}
                 .dump(2));
}

void print_table(const StageResult& stage, const tune::Trial& best) {
  report::Table table({{"tune " + stage.target.name}, {""}});
  table.add_row(
      {"best", fmt::format("{:.5g} {}", value_of(stage.target, *best.loss), stage.target.unit)});
  if (const auto usual = usual_value(stage))
    table.add_row({"default", fmt::format("{:.5g} {}", *usual, stage.target.unit)});
  for (const auto& [name, text] : tune::texts_of(stage.target.space, best.point))
    table.add_row({name, text});
  table.add_row(
      {"trials", fmt::format("{}, the best was number {}", stage.trials.size(), best.number + 1)});
  for (const auto& [name, share] : tune::importance(stage.target.space, stage.trials))
    table.add_row({"importance of " + name, fmt::format("{:.0f} %", 100 * share)});
  fmt::print("{}", table.text());
}

int run(Invocation& invocation, const Flags& flags) {
  const TuneRequest request = request_of(invocation, flags);
  const std::vector<int> stages = ranks_of_stages(invocation, flags);
  const double seconds =
      flags.time.empty() ? 1e300 : parse_duration(flags.time) / static_cast<double>(stages.size());
  std::optional<StageResult> stage;
  for (const int ranks : stages)
    stage = run_stage(invocation, flags, request, ranks, stage ? &*stage : nullptr, seconds);
  const tune::Trial* best = tune::best_of(stage->trials);
  if (!best)
    throw Error(ErrorCode::check, "no trial gave a number",
                "run the command by hand: it must end with code 0 and print a number last");
  if (!flags.output.empty())
    write_file_atomically(flags.output, best_as_toml(stage->target, best->point));
  if (invocation.json)
    print_json(invocation, *stage, *best);
  else
    print_table(*stage, *best);
  return 0;
}

}  // namespace

Command make_tune_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      .name = "tune",
      .summary = "search the best settings of linpack, collectives, train or any command",
      .sections = {},
      .add_flags =
          [flags](Arguments& arguments) {
            arguments.option("target", flags->target,
                             "linpack, collectives or train; after --: further flags of it, or a "
                             "command that prints a number, with {name} for values");
            arguments.option("--trials", flags->trials, "how many settings to try in each stage")
                .show_default()
                .range(1, 1'000'000);
            arguments.option("--time", flags->time, "begin no trial after this time: 90s, 10min");
            arguments.option("--stages", flags->stages,
                             "ranks from small to large, 1:8:*2; each begins with the best of the "
                             "one before");
            arguments
                .option("--parameter", flags->parameters,
                        "what to choose: lr=log:1e-4:0.1, nb=int:16:512, how=choice:ring,tree")
                .one_value_each();
            arguments
                .option("--constraint", flags->constraints, "a product that must come out: p*q=16")
                .one_value_each();
            arguments.flag("--maximize", flags->maximise, "of a command: more is better");
            arguments.option("--parallel", flags->parallel, "trials at the same time")
                .show_default()
                .range(1, 4096);
            arguments
                .option("--patience", flags->patience,
                        "end after so many trials without a better one; 0: never")
                .show_default()
                .range(0, 1'000'000);
            arguments
                .option("--give-up", flags->give_up,
                        "stop a trial after this many times the fastest one's time; 0: never")
                .show_default()
                .range(0.0, 1e9);
            arguments.option("--startup", flags->startup, "random trials before the model is used")
                .show_default()
                .range(1, 1'000'000);
            arguments.option("--journal", flags->journal,
                             "write each trial to this file, and go on where it ends");
            arguments.option("-o", flags->output, "write the best setting as TOML");
          },
      .run = [flags](Invocation& invocation) { return run(invocation, *flags); },
      .takes_rest = true};
}

}  // namespace renkei::cli
