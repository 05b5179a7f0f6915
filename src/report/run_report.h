// Everything that a run directory tells, read and understood: what `renkei report` shows in any
// form. A run that goes on, failed or was killed is read as far as it came.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/attribution.h"
#include "report/what_if.h"
#include "timeline/rank_file.h"

namespace renkei::report {

// The whole run of a rank: start-up, steps, what lies between them, the end. Adds up to the wall
// time.
struct RunPart {
  std::string name;
  double seconds = 0;
};

// An operation of the tasks, where they were recorded (--timeline ops).
struct OperationTime {
  std::string name;
  double seconds = 0, calls = 0;  // in a step of a rank, on average
};

struct RunReport {
  std::filesystem::path directory;
  nlohmann::json summary, config, plan, failure;  // the run's files; null: not there
  nlohmann::json metrics = nlohmann::json::array();
  std::vector<timeline::RankTimeline> ranks;  // empty: no timeline

  enum class Status { finished, failed, ended };  // ended: it goes on, or was killed
  Status status = Status::ended;
  std::string ended;  // where, in words, for all but finished runs

  std::vector<RecordedStep> steps;
  Attribution attribution;
  WhatIfs what_ifs;
  Verdict verdict;
  double wall_seconds = 0;                // of rank 0, as far as is known
  std::vector<RunPart> parts;             // of it
  std::vector<OperationTime> operations;  // the longest first

  void set_summary(nlohmann::json summary);  // the run has come to its end
  std::string name() const { return directory.filename().string(); }
  std::string model() const;
  double samples_per_second() const;
};

// A data Error when there is no run in the directory.
RunReport read_run(const std::filesystem::path& directory);

}  // namespace renkei::report
