// What a training run shows and keeps: progress on the terminal, metrics.jsonl and TensorBoard
// files on the way, a summary at the end. Only rank 0 has one that writes.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/json_lines.h"
#include "job/planning.h"
#include "plan/plan.h"
#include "report/progress.h"
#include "report/tensorboard.h"
#include "run/result.h"

namespace renkei::cli {

class TrainOutput : public run::Observer {
 public:
  TrainOutput(const std::filesystem::path& run_directory, bool show_progress);

  void on_step(const run::StepReport& report) override;
  void on_evaluation(int64_t step, const run::Evaluation& evaluation) override;
  void finish();

 private:
  JsonLinesWriter metrics_;
  report::TensorBoardWriter tensorboard_;
  std::optional<report::Progress> progress_;
};

// For the other ranks.
class NoOutput : public run::Observer {
  void on_step(const run::StepReport&) override {}
  void on_evaluation(int64_t, const run::Evaluation&) override {}
};

// What the summary needs to know besides the result.
struct TrainSummary {
  std::string model;
  plan::Plan plan;
  std::optional<job::Predicted> predicted = {};  // by the planner
  int ranks = 1, hosts = 1, threads_per_rank = 1;
  std::filesystem::path run_directory;
  run::TrainResult result;
  // By cause, of rank 0; without a timeline only what a rank alone can tell.
  std::optional<timeline::StepTimes> mean_step = {};
  std::string verdict = {};
  std::filesystem::path report = {};   // the page, if there is one
  std::filesystem::path weights = {};  // where they are; empty: not saved
  bool finished = true;                // false: it was asked to stop, and can go on
};

std::string summary_as_json(const TrainSummary& summary);
std::string summary_for_people(const TrainSummary& summary);

}  // namespace renkei::cli
