// The run directory of a program of Python's: settings, plan, metrics and timeline, as `renkei
// train` leaves them, so that `renkei report` and `renkei watch` know the run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_lines.h"
#include "job/run_timeline.h"
#include "report/tensorboard.h"
#include "timeline/recorder.h"
#include "world.h"

namespace renkei::python {

class RunRecord {
 public:
  // All ranks together. A directory that holds a run already goes on with it.
  RunRecord(World& world, const std::string& directory, const std::string& label,
            const std::map<std::string, std::string>& settings);

  std::string directory() const { return directory_.string(); }
  timeline::Recorder& recorder() { return recorder_; }
  timeline::RankFile* file() { return phases_.file(); }
  void set_plan(const std::string& json);

  // Not collective. A step ends where the next one begins.
  void begin_step(int64_t samples);
  void end_step();
  // A step that the engine has recorded itself: counted in the summary.
  void count_step(int64_t samples, double seconds);
  // What was done in the step under way, from `begin` until now, by seconds().
  void add(const std::string& name, const std::string& category, double begin);
  static double seconds();
  void phase(const std::string& name);  // that ends now, outside of steps
  int64_t step() const { return step_; }

  // On rank 0: numbers of a step, by name. Nothing on others.
  void log(int64_t step, const std::map<std::string, double>& values);
  void close();  // all ranks together, at an orderly end

 private:
  World& world_;
  std::filesystem::path directory_;
  job::Phases phases_;
  timeline::Recorder recorder_;
  std::optional<JsonLinesWriter> metrics_;
  std::optional<report::TensorBoardWriter> tensorboard_;
  int64_t step_ = -1, samples_ = 0;
  bool in_step_ = false;
  std::vector<double> counted_seconds_;
  std::set<std::string> names_;  // that outlive their events
};

}  // namespace renkei::python
