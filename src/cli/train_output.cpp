#include "cli/train_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/version.h"
#include "report/table.h"

namespace renkei::cli {
namespace {

using timeline::Category;

// The first steps allocate memory and fill caches; they are left out of the figures of speed.
constexpr size_t kWarmUpSteps = 2;

std::vector<double> seconds_of_steps(const run::TrainResult& result) {
  std::vector<double> seconds;
  const size_t skip = result.step_times.size() > 2 * kWarmUpSteps ? kWarmUpSteps : 0;
  for (size_t s = skip; s < result.step_times.size(); ++s)
    seconds.push_back(result.step_times[s].seconds);
  return seconds;
}

timeline::StepTimes mean_step(const TrainSummary& summary) {
  return summary.mean_step.value_or(timeline::mean_of(summary.result.step_times, kWarmUpSteps));
}

struct Speed {
  double median, p10, p90, samples_per_second;
};

Speed speed_of(const TrainSummary& summary) {
  const auto seconds = seconds_of_steps(summary.result);
  const double median = timeline::quantile(seconds, 0.5);
  return {median, timeline::quantile(seconds, 0.1), timeline::quantile(seconds, 0.9),
          median > 0 ? static_cast<double>(summary.plan.batch.global) / median : 0};
}

}  // namespace

TrainOutput::TrainOutput(const std::filesystem::path& run_directory, bool show_progress)
    : metrics_(run_directory / "metrics.jsonl"), tensorboard_(run_directory) {
  if (show_progress) progress_.emplace(report::progress_on_stderr());
}

void TrainOutput::on_step(const run::StepReport& report) {
  metrics_.append(nlohmann::json{{"step", report.step},
                                 {"epoch", report.epoch},
                                 {"loss", report.loss},
                                 {"learning_rate", report.learning_rate},
                                 {"samples", report.samples},
                                 {"seconds", report.seconds}}
                      .dump());
  tensorboard_.scalar("train/loss", report.step, report.loss);
  tensorboard_.scalar("train/learning_rate", report.step, report.learning_rate);
  const double rate = static_cast<double>(report.samples) / report.seconds;
  tensorboard_.scalar("train/samples_per_second", report.step, rate);
  if (progress_)
    progress_->update({.label = fmt::format("epoch {}/{}  step", report.epoch + 1, report.epochs),
                       .done = report.step + 1,
                       .total = report.steps,
                       .unit = "",
                       .rate = rate,
                       .rate_unit = "samples",
                       .loss = report.loss});
}

void TrainOutput::on_evaluation(int64_t step, const run::Evaluation& evaluation) {
  nlohmann::json line{{"step", step},
                      {"evaluation", {{"loss", evaluation.loss}, {"samples", evaluation.samples}}}};
  tensorboard_.scalar("evaluation/loss", step, evaluation.loss);
  if (evaluation.accuracy) {
    line["evaluation"]["accuracy"] = *evaluation.accuracy;
    tensorboard_.scalar("evaluation/accuracy", step, *evaluation.accuracy);
  }
  metrics_.append(line.dump());
}

void TrainOutput::finish() {
  if (progress_) progress_->finish();
  tensorboard_.flush();
}

namespace {

nlohmann::json memory_as_json(const run::TrainResult& result) {
  nlohmann::json rows = nlohmann::json::array();
  for (const run::MemoryBreakdown& memory : result.memory)
    rows.push_back({{"rank", rows.size()},
                    {"parameters", memory.parameters},
                    {"gradients", memory.gradients},
                    {"optimizer", memory.optimizer},
                    {"activations", memory.activations},
                    {"other", memory.other},
                    {"peak", memory.peak},
                    {"device", memory.device}});
  return rows;
}

report::Table memory_table(const run::TrainResult& result) {
  using report::Align;
  report::Table table({{"memory"},
                       {"parameters", Align::right},
                       {"gradients", Align::right},
                       {"optimizer", Align::right},
                       {"activations", Align::right},
                       {"other", Align::right},
                       {"in all", Align::right}});
  // Ranks of a data-parallel run are alike: the largest stands for all when there are many.
  const auto add = [&](const std::string& name, const run::MemoryBreakdown& memory) {
    table.add_row({name, format_size(memory.parameters), format_size(memory.gradients),
                   format_size(memory.optimizer), format_size(memory.activations),
                   format_size(memory.other), format_size(memory.peak)});
  };
  constexpr size_t kRowsAtMost = 8;
  if (result.memory.size() > kRowsAtMost)
    add("largest rank", *std::ranges::max_element(result.memory, {}, &run::MemoryBreakdown::peak));
  else
    for (size_t rank = 0; rank < result.memory.size(); ++rank)
      add(fmt::format("rank {}", rank), result.memory[rank]);
  return table;
}

}  // namespace

std::string summary_as_json(const TrainSummary& summary) {
  const run::TrainResult& result = summary.result;
  const Speed speed = speed_of(summary);
  nlohmann::json time;
  const timeline::StepTimes mean = mean_step(summary);
  for (int c = 0; c < timeline::kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    time[std::string(name_of(category))] = mean[category];
  }
  nlohmann::json predicted;
  if (summary.predicted)
    predicted = {{"step_seconds", summary.predicted->step_seconds},
                 {"bubble", summary.predicted->bubble},
                 {"memory_bytes", summary.predicted->memory_bytes}};
  nlohmann::json accuracy;
  if (result.evaluation && result.evaluation->accuracy) accuracy = *result.evaluation->accuracy;
  return nlohmann::json{
      {"command", "train"},
      {"version", kVersion},
      {"ranks", summary.ranks},
      {"hosts", summary.hosts},
      {"threads_per_rank", summary.threads_per_rank},
      {"run_dir", summary.run_directory.string()},
      {"model", summary.model},
      {"parameters", result.parameters},
      {"plan",
       {{"kind", plan::name_of(summary.plan.kind)},
        {"stages", summary.plan.stages},
        {"replicas", summary.plan.replicas},
        {"tensor", summary.plan.tensor},
        {"micro_batches", summary.plan.batch.accumulation},
        {"schedule", summary.plan.schedule}}},
      {"batch", summary.plan.batch.global},
      {"steps", result.steps},
      {"epochs", result.epochs},
      {"samples_per_second", speed.samples_per_second},
      {"step_seconds", {{"median", speed.median}, {"p10", speed.p10}, {"p90", speed.p90}}},
      {"loss", {{"first", result.loss_first}, {"last", result.loss_last}}},
      {"accuracy", accuracy},
      {"parameters_checksum", result.checksum},
      {"predicted", predicted},
      {"memory_bytes", memory_as_json(result)},
      {"weights",
       summary.weights.empty() ? nlohmann::json() : nlohmann::json(summary.weights.string())},
      {"finished", summary.finished},
      {"time", time}}
      .dump(2);
}

namespace {

std::string plan_in_words(const plan::Plan& plan) {
  const std::string together =
      plan.tensor > 1 ? fmt::format(", {} of which compute each layer together", plan.tensor) : "";
  if (plan.stages == 1 && plan.tensor > 1)
    return fmt::format("{} replica{} on {} ranks{}", plan.replicas, plan.replicas == 1 ? "" : "s",
                       plan.ranks(), together);
  if (plan.stages == 1)
    return fmt::format("data parallel on {} rank{}", plan.replicas, plan.replicas == 1 ? "" : "s");
  return fmt::format("{} stages on {} ranks{}, {} micro-batches, {}{}", plan.stages, plan.ranks(),
                     together, plan.batch.accumulation, plan.schedule,
                     plan.sharded_optimizer ? ", sharded optimizer" : "");
}

// The planner's word beside what came of it.
void add_predicted(report::Table& facts, const TrainSummary& summary, double step_seconds) {
  const job::Predicted& predicted = *summary.predicted;
  facts.add_row(
      {"predicted step", fmt::format("{} ({:+.0f} %)", format_duration(predicted.step_seconds),
                                     100 * (predicted.step_seconds / step_seconds - 1))});
  const auto ranks = std::min(predicted.memory_bytes.size(), summary.result.memory.size());
  size_t largest = 0;
  for (size_t rank = 0; rank < ranks; ++rank)
    if (summary.result.memory[rank].device > summary.result.memory[largest].device) largest = rank;
  if (ranks == 0) return;
  const int64_t device = summary.result.memory[largest].device;
  facts.add_row({"memory of a device",
                 fmt::format("{} on rank {}, predicted {} ({:+.0f} %)", format_size(device),
                             largest, format_size(predicted.memory_bytes[largest]),
                             100 * (static_cast<double>(predicted.memory_bytes[largest]) /
                                        static_cast<double>(device) -
                                    1))});
}

}  // namespace

std::string summary_for_people(const TrainSummary& summary) {
  const run::TrainResult& result = summary.result;
  const Speed speed = speed_of(summary);
  report::Table facts({{"result"}, {""}});
  facts.add_row(
      {"model", fmt::format("{}, {} parameters", summary.model, format_count(result.parameters))});
  facts.add_row({"loss", fmt::format("{:.6g} → {:.6g}", result.loss_first, result.loss_last)});
  if (result.evaluation && result.evaluation->accuracy)
    facts.add_row({"accuracy", fmt::format("{:.1f} % of {} held-out samples",
                                           100 * *result.evaluation->accuracy,
                                           format_count(result.evaluation->samples))});
  facts.add_row({"speed", fmt::format("{:.0f} samples/s", speed.samples_per_second)});
  facts.add_row({"step", fmt::format("{} (p10 {}, p90 {})", format_duration(speed.median),
                                     format_duration(speed.p10), format_duration(speed.p90))});
  facts.add_row({"trained", fmt::format("{} steps, {} epoch{}", format_count(result.steps),
                                        result.epochs, result.epochs == 1 ? "" : "s")});
  facts.add_row({"plan", plan_in_words(summary.plan)});
  if (summary.predicted) add_predicted(facts, summary, speed.median);
  facts.add_row({"checksum", result.checksum});
  if (!summary.weights.empty()) facts.add_row({"weights", summary.weights.string()});

  report::Table times({{"where a step's time goes"},
                       {"mean", report::Align::right},
                       {"share", report::Align::right}});
  const timeline::StepTimes mean = mean_step(summary);
  for (int c = 0; c < timeline::kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (mean[category] <= 0) continue;
    times.add_row({std::string(name_of(category)), format_duration(mean[category]),
                   fmt::format("{:.1f} %", 100 * mean[category] / mean.seconds)});
  }
  const std::string directory = summary.run_directory.string();
  const std::string end =
      summary.finished ? "see " + (summary.report.empty() ? directory : summary.report.string())
                       : fmt::format("stopped after step {}; renkei train --resume {} goes on",
                                     result.steps, directory);
  return fmt::format("{}\n{}\n{}{}\n{}\n", facts.text(), times.text(),
                     summary.verdict.empty() ? "" : summary.verdict + "\n\n",
                     memory_table(result).text(), end);
}

}  // namespace renkei::cli
